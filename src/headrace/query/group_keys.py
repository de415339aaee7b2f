"""The keys of GROUP BY, bound: one list for each grouping set."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Scalar
from headrace.query.coerce import settled
from headrace.query.expressions import Expressions
from headrace.query.grouped import Key
from headrace.query.grouping_sets import grouping_sets, is_distinct
from headrace.query.identifiers import name_of
from headrace.query.output_names import output_name
from headrace.query.refusal import incomparable, refuse
from headrace.query.scope import Scope, find
from headrace.query.unmatched import require_exact

Outputs = Sequence[tuple[str, Scalar]]


def group_keys(select: exp.Select, scope: Scope, outputs: Outputs) -> tuple[tuple[Key, ...], ...]:
    """The grouping sets of a block, none if it has no GROUP BY.

    A key is an output's position, an input column, an output's name, or an expression, in that
    order. `outputs` are the block's outputs by their names.
    """
    group = select.args.get("group")
    if group is None:
        return ()
    known: dict[int, Key] = {}

    def bound(node: exp.Expr) -> Key:
        if id(node) not in known:
            known[id(node)] = _key(node, scope, outputs)
        return known[id(node)]

    sets = tuple(tuple(bound(node) for node in keys) for keys in grouping_sets(group))
    if not is_distinct(group):
        return sets
    different = {frozenset(key.scalar for key in keys): keys for keys in reversed(sets)}
    return tuple(reversed(different.values()))


def _key(node: exp.Expr, scope: Scope, outputs: Outputs) -> Key:
    scalar = _scalar(node, scope, outputs)
    if scalar.type.comparison == "none":
        raise incomparable("GROUP BY", scalar.type, node)
    require_exact(scalar.type, "GROUP BY", node)
    return Key(scalar, output_name(node), node)


def _scalar(node: exp.Expr, scope: Scope, outputs: Outputs) -> Scalar:
    if isinstance(node, exp.Literal):
        if node.is_string or not node.name.isdigit():
            raise refuse("invalid-query", "non-integer constant in GROUP BY", node)
        if not 1 <= int(node.name) <= len(outputs):
            message = f"GROUP BY position {node.name} is not in select list"
            raise refuse("invalid-query", message, node)
        return outputs[int(node.name) - 1][1]
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = name_of(node.this)
        if not find(name, scope.columns):
            named = {scalar for known, scalar in outputs if known == name}
            if len(named) > 1:
                raise refuse("ambiguous-column", f'GROUP BY "{name}" is ambiguous', node)
            if named:
                return named.pop()
    return settled(Expressions(scope, "GROUP BY").bind(node))
