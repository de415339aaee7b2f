"""GROUP BY as a list of sets of keys: GROUPING SETS, ROLLUP, CUBE, and their products."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from sqlglot import exp

from headrace.query.refusal import refuse

MAXIMUM_SETS = 64
"""Each set is grouped by itself, in a stage of its own."""

Keys = tuple[exp.Expr, ...]


def grouping_sets(group: exp.Group) -> tuple[Keys, ...]:
    """The sets that the rows are grouped by; entries of GROUP BY multiply, as in PostgreSQL."""
    return tuple(_product([_sets(entry) for entry in group.expressions], group))


def is_distinct(group: exp.Group) -> bool:
    """GROUP BY DISTINCT: equal sets count once. The parser says it as `all` being false."""
    return group.args.get("all") is False


def _sets(entry: exp.Expr) -> list[Keys]:
    match entry:
        case exp.GroupingSets():
            return [keys for part in entry.expressions for keys in _sets(part)]
        case exp.Rollup():
            parts = [_keys(part) for part in entry.expressions]
            return [_joined(parts[:end]) for end in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_keys(part) for part in entry.expressions]
            if 2 ** len(parts) > MAXIMUM_SETS:
                raise _too_many(entry)
            chosen = product((True, False), repeat=len(parts))
            return [_joined(p for p, is_in in zip(parts, c, strict=True) if is_in) for c in chosen]
        case _:
            return [_keys(entry)]


def _keys(entry: exp.Expr) -> Keys:
    """The keys of a plain entry: several in parentheses, none in empty ones."""
    match entry:
        case exp.Tuple():
            return tuple(entry.expressions)
        case exp.Paren():
            return _keys(entry.this)
        case _:
            return (entry,)


def _joined(parts: Iterable[Keys]) -> Keys:
    return tuple(key for keys in parts for key in keys)


def _product(factors: list[list[Keys]], group: exp.Group) -> list[Keys]:
    count = 1
    for factor in factors:
        count *= len(factor)
        if count > MAXIMUM_SETS:
            raise _too_many(group)
    return [_joined(parts) for parts in product(*factors)]


def _too_many(node: exp.Expr) -> Exception:
    message = f"more than {MAXIMUM_SETS} grouping sets are not maintained"
    return refuse("unsupported-query", message, node, "Make several stream tables of them.")
