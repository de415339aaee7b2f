"""The pieces that every rendered SELECT is made of."""

from __future__ import annotations

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
    """What to group equal rows by, and the columns of a group.

    Spark's GROUP BY folds -0.0 into 0.0, so floats are grouped by their digits. Columns come out as
    aggregates, not as the keys they are: Spark would push a condition on a key below the groups,
    where it raises on rows that these remove. Those that are `plain` come out as keys, for the sake
    of just that.
    """
    groups: list[exp.Expression] = []
    shown: list[exp.Expression] = []
    for c in columns:
        is_float = (c.type.element or c.type).is_float
        groups.append(spark_cast(column(c.id), TEXT) if is_float else column(c.id))
        value = exp.Anonymous(this="any_value", expressions=[column(c.id)])
        shown.append(column(c.id) if c.id in plain else named(value, c))
    return groups, shown


def as_table(query: exp.Query, name: str) -> exp.Subquery:
    """A query in FROM, under a name."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(name)))


def joined(select: exp.Select, kind: str, table: exp.Expression, on: exp.Expr | None) -> exp.Select:
    """The SELECT, itself changed, with one more table: inner, cross, left, full, left semi, …"""
    *side, word = kind.upper().split()
    words = {"side": word} if word in ("LEFT", "FULL") else {"side": "".join(side), "kind": word}
    given = {name: text for name, text in words.items() if text}
    select.append("joins", exp.Join(this=table, on=on, **given))
    return select


def hinted(select: exp.Select, hint: str, *arguments: exp.Expression) -> exp.Select:
    """The SELECT, itself changed, with one more hint for Spark."""
    found = select.args.get("hint")
    hints = [] if found is None else found.expressions
    more = exp.Anonymous(this=hint, expressions=list(arguments))
    select.set("hint", exp.Hint(expressions=[*hints, more]))
    return select
