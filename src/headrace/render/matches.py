"""Left, semi, anti and full joins as Spark's own, and the side of a join that has few rows.

The weights of a pair are multiplied; a padded side counts 1. A side that is searched for matches is
netted: Spark finds a match in every row of it.

OuterSemiAntiJoinDelta is such a join, too. A row says by its side whether it is matched with the
state after or with the state before, and so does a row of these states:

    Σ side · (rows on both sides)  op[condition and the same side]  (after and before, netted)

A side has few rows if it reads only changes. Changes that a query of one partition reads are held
in memory already, so the join can hold another copy.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.algebra.scalar import Column
from headrace.functions.function import spark_binary, spark_function
from headrace.plan.operators import (
    Filter,
    FullJoin,
    Join,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Part,
    Project,
    Scan,
    UnionAll,
)
from headrace.render.pieces import (
    WEIGHT,
    aliased,
    bigint,
    columns_named,
    joined,
    of_table,
    weighted,
)
from headrace.render.scalars import column, identifier, render_scalar
from headrace.types import BIGINT

_FEW = frozenset({"change", "found", "lost", "stale"})


def small_side(plan: Join | OuterSemiAntiJoin | FullJoin) -> int | None:
    """Return the place of the side that is worth hashing, if Spark can hash it for this join."""
    if plan.condition is None:
        return None
    hashable: tuple[int, ...]
    match plan:
        case Join():
            hashable = (0, 1)
        case OuterSemiAntiJoin(kind="left"):
            hashable = (0,)
        case OuterSemiAntiJoin():
            hashable = (1,)
        case FullJoin():
            hashable = ()
    return next((place for place in hashable if _is_small(plan.children[place])), None)


def _is_small(plan: Operator) -> bool:
    match plan:
        case Scan(version=version):
            return version in _FEW
        case Filter() | Project() | Negate() | Net() | Part() | UnionAll():
            return all(map(_is_small, plan.children))
        case _:
            return False


_JOINS = {"left": "left", "semi": "left semi", "anti": "left anti"}
Side = tuple[str, exp.Expression]
SIDE = Column("_side", BIGINT)
AFTER, BEFORE = 1, -1


def outer_semi_anti_join(plan: OuterSemiAntiJoin | FullJoin, left: Side, right: Side) -> exp.Select:
    """Return the join over weighted rows; each side is an alias and the table under it."""
    weight: exp.Expression = of_table(left[0], WEIGHT)
    if isinstance(plan, FullJoin):
        weight = _or_one(weight)
    if isinstance(plan, FullJoin) or plan.kind == "left":
        weight = spark_binary(exp.Mul, weight, _or_one(of_table(right[0], WEIGHT)))
    select = weighted(weight, *columns_named(plan.columns)).from_(left[1], copy=False)
    return matched_with(plan, select, right[1])


def matched_with(
    plan: OuterSemiAntiJoin | FullJoin, select: exp.Select, right: exp.Expression
) -> exp.Select:
    """Return a SELECT from the left side, joined with the other."""
    on = exp.true() if plan.condition is None else render_scalar(plan.condition)
    kind = "full" if isinstance(plan, FullJoin) else _JOINS[plan.kind]
    return joined(select, kind, right, on)


def outer_semi_anti_join_delta(
    plan: OuterSemiAntiJoinDelta, rows: Side, matches: Side
) -> exp.Select:
    """Return the join of rows and matches that have sides."""
    side, weight = of_table(rows[0], SIDE.id), of_table(rows[0], WEIGHT)
    signed = spark_binary(exp.Mul, side, weight)
    if plan.kind == "left":
        signed = spark_binary(exp.Mul, signed, _or_one(of_table(matches[0], WEIGHT)))
    on: exp.Expression = exp.EQ(this=side.copy(), expression=of_table(matches[0], SIDE.id))
    if plan.condition is not None:
        on = exp.And(this=on, expression=exp.Paren(this=render_scalar(plan.condition)))
    select = weighted(signed, *columns_named(plan.columns)).from_(rows[1], copy=False)
    return joined(select, _JOINS[plan.kind], matches[1], on)


def on_side(side: int, columns: tuple[Column, ...], rows: exp.Expression) -> exp.Select:
    """Return weighted rows on one side."""
    select_list = [aliased(bigint(side), SIDE.id), column(WEIGHT), *columns_named(columns)]
    return exp.Select(expressions=select_list).from_(rows, copy=False)


def sided(columns: tuple[Column, ...], rows: exp.Expression) -> exp.Query:
    """Return weighted rows on both sides."""
    both = exp.Lateral(
        this=spark_function("explode", spark_function("array", bigint(AFTER), bigint(BEFORE))),
        view=True,
        alias=exp.TableAlias(this=identifier("sides"), columns=[identifier(SIDE.id)]),
    )
    select_list = [column(SIDE.id), column(WEIGHT), *columns_named(columns)]
    return exp.Select(expressions=select_list).from_(rows, copy=False).lateral(both, copy=False)


def _or_one(weight: exp.Expression) -> exp.Expression:
    return exp.Coalesce(this=weight, expressions=[bigint(1)])
