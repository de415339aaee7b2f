"""generate_series: numbers or times from a start to a stop, both included, in equal steps.

A step of zero is an error, a step that leads away from the stop returns no rows. Spark's `sequence`
counts whole numbers, and on its own would count downward to a stop that lies below the start.

A series of timestamps has a constant step of months or of smaller units. PostgreSQL adds the step
repeatedly: a month after January 31 is February 29, and a month later March 29. Spark multiplies
the step, and reaches March 31. They agree where every month has the day, so a step of months needs
a constant start.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, Value
from headrace.functions.function import EvaluationError, spark_binary, spark_cast, spark_function
from headrace.functions.intervals import DAY, IntervalParts, parts_of
from headrace.functions.logic import common_type
from headrace.functions.spark import case, fails, let, long, minus, number, plus, times
from headrace.functions.table_function import Rows, TableFunction, Types
from headrace.types import BIGINT, INTEGER, Type, result_numeric

Expression = exp.Expression

_SECONDS = result_numeric(18, 6)
_DAYS_OF_ALL_MONTHS = 28


def time_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type of the series, if it is one of times with a step as above."""
    start, stop, step = arguments
    kinds = {start.type.kind, stop.type.kind}
    if len(kinds) != 1 or not kinds <= {"timestamp", "timestamptz"} or step.type.kind != "interval":
        return None
    if not isinstance(step, Literal):
        return None
    parts = step_of(step.value)
    if parts.months and (parts.days or parts.micros or not _starts_early(start)):
        return None
    return start.type


def step_of(interval: object) -> IntervalParts:
    """Return the step's parts; those of a NULL are zero."""
    return IntervalParts(0, 0, 0) if interval is None else parts_of(str(interval))


def _starts_early(start: Scalar) -> bool:
    while isinstance(start, Call) and start.function == "cast":
        (start,) = start.arguments
    value = start.value if isinstance(start, Literal) else None
    return isinstance(value, date) and value.day <= _DAYS_OF_ALL_MONTHS


def sign(step: IntervalParts) -> int:
    """Return the direction of the step: 1 forward, -1 backward, 0 for a step of nothing."""
    length = step.months or step.days * DAY + step.micros
    return (length > 0) - (length < 0)


def spark_step(step: IntervalParts) -> Expression:
    """Return the step as an interval of Spark's."""
    if step.months:
        return spark_function("make_ym_interval", number(0), number(step.months))
    micros = step.days * DAY + step.micros
    seconds = spark_cast(exp.Literal.string(f"{Decimal(micros).scaleb(-6):f}"), _SECONDS)
    return spark_function("make_dt_interval", number(0), number(0), number(0), seconds)


def following(at: datetime, step: IntervalParts) -> datetime:
    """Return the time one step later."""
    month = at.month - 1 + step.months
    year, month = at.year + month // 12, month % 12 + 1
    day = min(at.day, calendar.monthrange(year, month)[1])
    moved = at.replace(year=year, month=month, day=day)
    return moved + timedelta(days=step.days, microseconds=step.micros)


ZERO_STEP = "step size cannot equal zero"
MOST_DIGITS = 16
"""Digits of a numeric start, stop or step: the count of steps times the step still has place."""

_COUNT = result_numeric(19, 0)


def _types(arguments: Sequence[Scalar]) -> Types | None:
    if len(arguments) != 3:
        return None
    moment = time_type(arguments)
    if moment is not None:
        return (moment,)
    start, stop, step = (argument.type for argument in arguments)
    common = common_type([start, stop, step])
    if common is None or common.is_float or not common.is_number:
        return None
    if common.is_integer:
        return (BIGINT if common == BIGINT else INTEGER,)
    assert common.precision is not None and common.scale is not None
    plain = result_numeric(common.precision, common.scale)
    return (plain,) if common.precision <= MOST_DIGITS else None


def _spark(arguments: Sequence[Expression], _: Sequence[Type], result: Types) -> Expression:
    (type_,) = result
    if type_.is_moment:
        return _times(*arguments)
    steps = _whole if type_.is_integer else _decimals
    exact = [spark_cast(a, BIGINT if type_.is_integer else type_) for a in arguments]

    def series(start: Expression, stop: Expression, step: Expression) -> Expression:
        above = exp.GT(this=step.copy(), expression=number(0))
        below = exp.LT(this=step.copy(), expression=number(0))
        up = exp.And(this=above, expression=_ordered(start, stop))
        down = exp.And(this=below, expression=_ordered(stop, start))
        leads = exp.Or(this=exp.Paren(this=up), expression=exp.Paren(this=down))
        still = exp.EQ(this=step.copy(), expression=number(0))
        return _guarded(start, stop, still, leads, steps(start, stop, step))

    return let(exact, series)


def _ordered(low: Expression, high: Expression) -> Expression:
    return exp.LTE(this=low.copy(), expression=high.copy())


def _guarded(
    start: Expression, stop: Expression, still: Expression, leads: Expression, steps: Expression
) -> Expression:
    """Return the steps if they lead to the stop.

    A step of zero is an error, but not beside a NULL.
    """
    nulls = (exp.Is(this=end.copy(), expression=exp.Null()) for end in (start, stop))
    missing = spark_binary(exp.Or, *nulls)
    return case(missing, exp.Null(), still, fails(ZERO_STEP), leads, steps, exp.Null())


def _whole(start: Expression, stop: Expression, step: Expression) -> Expression:
    return spark_function("sequence", start.copy(), stop.copy(), step.copy())


def _decimals(start: Expression, stop: Expression, step: Expression) -> Expression:
    count = exp.Paren(
        this=exp.IntDiv(this=minus(stop.copy(), start.copy()), expression=step.copy())
    )
    place = exp.to_identifier("place")
    steps = times(spark_cast(exp.Column(this=place.copy()), _COUNT), step.copy())
    value = exp.Lambda(this=plus(start.copy(), steps), expressions=[place])
    numbers = spark_function("sequence", long(number(0)), long(count))
    return spark_function("transform", numbers, value)


def _times(start: Expression, stop: Expression, step: Expression) -> Expression:
    if not isinstance(step, exp.Literal):
        return exp.Null()
    parts = step_of(step.name)
    forward = sign(parts)
    leads = _ordered(start, stop) if forward > 0 else _ordered(stop, start)
    still = exp.false() if forward else exp.true()
    return _guarded(start, stop, still, leads, _whole(start, stop, spark_step(parts)))


def _evaluate(arguments: Sequence[Value], types: Types) -> Rows:
    start: Any
    stop: Any
    step: Any
    start, stop, step = arguments
    if types[0].is_moment:
        parts = step_of(step)
        return _stepped(start, stop, sign(parts), lambda at: following(at, parts))
    if types[0].kind == "numeric":
        start, stop, step = (Decimal(value) for value in (start, stop, step))
    return _stepped(start, stop, step, lambda at: at + step)


def _stepped(start: Any, stop: Any, sign: Any, after: Callable[[Any], Any]) -> Rows:
    if sign == 0:
        raise EvaluationError(ZERO_STEP)
    rows: Rows = []
    while start <= stop if sign > 0 else start >= stop:
        rows.append((start,))
        try:
            start = after(start)
        except (OverflowError, ValueError):
            # Beyond the year 9999, where no stop can be.
            break
    return rows


GENERATE_SERIES = TableFunction(
    "generate_series",
    _types,
    _spark,
    _evaluate,
    "generate_series(start, stop), generate_series(start, stop, step)",
    raises=True,
    unique=True,
    note="Whole numbers, numeric of up to 16 digits, or timestamps with a constant step: in days"
    " and smaller units, or in months from a constant start up to the 28th. Dates are taken as"
    " timestamptz in UTC, as PostgreSQL takes them in the session's time zone.",
)
