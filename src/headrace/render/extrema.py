"""Extrema as Spark SQL: the stored, inserted and deleted values, and the new extremum.

For the extremum x of a group: `old_x` is the stored one, `in_x` and `out_x` the best of the values
that a change inserts and deletes. The table of cases is in `plan/operators/aggregate.py`. Of a
Merge that grows there is no `out_x`.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.functions.function import spark_cast, spark_function
from headrace.plan.operators import Extremum, GroupState
from headrace.render.pieces import WEIGHT, aliased, bigint
from headrace.render.scalars import column, render_scalar

SIDES = ("old", "in", "out")


def extremum(each: Extremum, value: exp.Expression) -> exp.Expression:
    """Return the aggregate over a group's values, in the type that it is kept in."""
    return spark_cast(spark_function(each.kept, value), each.column.type)


def _sides_of(grows: bool) -> tuple[str, ...]:
    return SIDES[:-1] if grows else SIDES


def stored_values(each: Extremum, grows: bool) -> list[exp.Expression]:
    """Return the columns of each side, from the stored row of a group."""
    return _sides(each, column(each.column.id), *[None for _ in _sides_of(grows)[1:]])


def changed_values(each: Extremum, grows: bool) -> list[exp.Expression]:
    """Return the columns of each side, from a row of the change."""
    if grows:
        return _sides(each, None, render_scalar(each.term))
    zero = bigint(0)
    came = exp.GT(this=column(WEIGHT), expression=zero)
    went = exp.LT(this=column(WEIGHT), expression=zero.copy())
    values = (exp.Case(ifs=[exp.If(this=c, true=render_scalar(each.term))]) for c in (came, went))
    return _sides(each, None, *values)


def _sides(each: Extremum, *values: exp.Expression | None) -> list[exp.Expression]:
    return [
        aliased(spark_cast(value or exp.Null(), each.column.type), f"{side}_{each.column.id}")
        for side, value in zip(_sides_of(len(values) < len(SIDES)), values, strict=True)
    ]


def gathered(each: Extremum, grows: bool) -> list[exp.Expression]:
    """Return the columns of each side of a whole group; only one row of it has an old value."""
    return [aliased(_gathered(each, s), f"{s}_{each.column.id}") for s in _sides_of(grows)]


def _gathered(each: Extremum, side: str) -> exp.Expression:
    return extremum(each, column(f"{side}_{each.column.id}"))


def moved(each: Extremum, grows: bool) -> exp.Expression:
    """Return whether a group's extremum may have changed: a better one came, or it was deleted."""
    old, *values = (_gathered(each, side) for side in _sides_of(grows))
    came = values[0]
    nothing = exp.Is(this=old.copy(), expression=exp.Null())
    some = exp.Not(this=exp.Is(this=came.copy(), expression=exp.Null()))
    either = [_as_good(each, value, old.copy()) for value in values]
    return exp.Paren(this=exp.or_(exp.and_(nothing, some), *either))


def grown(each: Extremum) -> exp.Expression:
    """Return the better of the stored and the inserted value; a NULL is no value."""
    old, came = (column(f"{side}_{each.column.id}") for side in _sides_of(True))
    return spark_function("least" if each.kept == "min" else "greatest", old, came)


def merged(each: Extremum, present: exp.Expression) -> exp.Expression:
    """Return the new extremum; `present` is the number of values that are left."""
    old, came, went = (column(f"{side}_{each.column.id}") for side in SIDES)
    none_left = exp.EQ(this=present, expression=bigint(0))
    return exp.Case(
        ifs=[
            exp.If(this=none_left, true=exp.Null()),
            exp.If(this=exp.not_(_as_good(each, went, old)), true=grown(each)),
            exp.If(this=_as_good(each, came.copy(), old.copy()), true=came.copy()),
        ]
    )


def stale(each: Extremum, present: exp.Expression) -> exp.Expression:
    """Return whether the group lost its extremum and no inserted value takes its place."""
    old, came, went = (column(f"{side}_{each.column.id}") for side in SIDES)
    some_left = exp.NEQ(this=present, expression=bigint(0))
    lost = _as_good(each, went, old)
    replaced = _as_good(each, came, old.copy())
    return exp.Paren(this=exp.and_(some_left, lost, exp.not_(replaced)))


def _as_good(each: Extremum, value: exp.Expression, old: exp.Expression) -> exp.Expression:
    """Return whether there is a value, and it is at least as good as the old one."""
    compare = exp.LTE if each.kept == "min" else exp.GTE
    return spark_function("coalesce", compare(this=value, expression=old), exp.false())


def any_stale(state: GroupState, left: dict[str, exp.Expression]) -> exp.Expression:
    """Return whether a group that stays is stale.

    `left` gives the new totals by their columns' ids.
    """
    each_one = (stale(each, left[each.present.id].copy()) for each in state.extrema)
    stale_groups = exp.Paren(this=exp.or_(*each_one))
    if not state.keys:
        return stale_groups
    stays = exp.NEQ(this=left[state.rows.id].copy(), expression=bigint(0))
    return exp.Paren(this=exp.and_(stays, stale_groups))
