"""The pieces that every rendered SELECT is made of, and queries nested in queries.

A query stands in FROM, or in WITH where it would be nested too deeply: each level of nesting costs
the printer of SQL about ten of Python's thousand frames, and the expressions inside need most of
them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.functions.function import spark_cast
from headrace.render.scalars import column, identifier
from headrace.types import BIGINT, TEXT

WEIGHT = "_weight"


def bigint(value: int) -> exp.Expression:
    return spark_cast(exp.Literal.number(value), BIGINT)


def of_table(table: str, name: str) -> exp.Column:
    return exp.Column(this=identifier(name), table=identifier(table))


def columns_named(columns: tuple[Column, ...]) -> list[exp.Expression]:
    return [column(c.id) for c in columns]


def aliased(expression: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=expression, alias=identifier(name))


def named(expression: exp.Expression, c: Column) -> exp.Expression:
    return aliased(expression, c.id)


def weighted(weight: exp.Expression, *shown: exp.Expression) -> exp.Select:
    return exp.Select(expressions=[aliased(weight, WEIGHT), *shown])


def select_weighted(columns: tuple[Column, ...]) -> exp.Select:
    return exp.Select(expressions=[column(WEIGHT), *columns_named(columns)])


def grouped_rows(
    columns: tuple[Column, ...], plain: frozenset[str] = frozenset()
) -> tuple[list[exp.Expression], list[exp.Expression]]:
    """Return the keys to group equal rows by, and the columns of a group.

    Spark's GROUP BY folds -0.0 into 0.0, so floats are grouped by their digits. Columns come out as
    aggregates, not as the keys they are: Spark would push a condition on a key below the groups,
    where it raises on rows that these remove. Those that are `plain` come out as keys, for the sake
    of just that.
    """
    groups: list[exp.Expression] = []
    select_list: list[exp.Expression] = []
    for c in columns:
        is_float = (c.type.element or c.type).is_float
        groups.append(spark_cast(column(c.id), TEXT) if is_float else column(c.id))
        value = exp.Anonymous(this="any_value", expressions=[column(c.id)])
        select_list.append(column(c.id) if c.id in plain else named(value, c))
    return groups, select_list


def as_table(query: exp.Query, name: str) -> exp.Subquery:
    """Return a query in FROM, under a name."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(name)))


def joined(select: exp.Select, kind: str, table: exp.Expression, on: exp.Expr | None) -> exp.Select:
    """Return the SELECT, itself changed, with one more table.

    `kind` is inner, cross, left, full, left semi, …
    """
    *side, word = kind.upper().split()
    words = {"side": word} if word in ("LEFT", "FULL") else {"side": "".join(side), "kind": word}
    join_arguments = {name: text for name, text in words.items() if text}
    select.append("joins", exp.Join(this=table, on=on, **join_arguments))
    return select


def hinted(select: exp.Select, hint: str, *arguments: exp.Expression) -> exp.Select:
    """Return the SELECT, itself changed, with one more hint for Spark."""
    existing = select.args.get("hint")
    hints = [] if existing is None else existing.expressions
    more = exp.Anonymous(this=hint, expressions=list(arguments))
    select.set("hint", exp.Hint(expressions=[*hints, more]))
    return select


DEEPEST = 16


class Nesting:
    """The subqueries of one query, with the names that it hands out for them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._level = 0
        self._named: list[exp.CTE] = []

    def alias(self) -> str:
        return f"q{next(self._numbers)}"

    def table(self, make: Callable[[], exp.Query], name: str | None = None) -> exp.Expression:
        """Return the query that `make` gives, as a table under a name."""
        outer = self._level
        cut = outer == DEEPEST
        self._level = 0 if cut else outer + 1
        query = make()
        self._level = outer
        name = name or self.alias()
        if not cut:
            return as_table(query, name)
        defined = f"w{len(self._named) + 1}"
        alias = exp.TableAlias(this=identifier(defined))
        self._named.append(exp.CTE(this=query, alias=alias))
        return exp.Table(this=identifier(defined), alias=exp.TableAlias(this=identifier(name)))

    def whole(self, query: exp.Query) -> exp.Query:
        """Return the outermost query, with all that was put into WITH before it."""
        if self._named:
            query.set("with_", exp.With(expressions=self._named))
        return query
