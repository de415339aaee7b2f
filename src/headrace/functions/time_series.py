"""generate_series of timestamps, by a constant step of months or of smaller units.

PostgreSQL adds the step again and again: a month after January 31 is February 29, and a month
later March 29. Spark multiplies the step, and comes to March 31. They agree where the day is one
that every month has, so a step of months needs a constant start.
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar
from headrace.functions.function import spark_cast, spark_function
from headrace.functions.intervals import DAY, IntervalParts, parts_of
from headrace.functions.spark import number
from headrace.types import Type, result_numeric

Expression = exp.Expression

KINDS = ("timestamp", "timestamptz")
_SECONDS = result_numeric(18, 6)
_DAYS_OF_ALL_MONTHS = 28


def time_type(arguments: Sequence[Scalar]) -> Type | None:
    """The type of the series, if it is one of times with a step as above."""
    start, stop, step = arguments
    kinds = {start.type.kind, stop.type.kind}
    if len(kinds) != 1 or not kinds <= set(KINDS) or step.type.kind != "interval":
        return None
    if not isinstance(step, Literal):
        return None
    parts = step_of(step.value)
    if parts.months and (parts.days or parts.micros or not _starts_early(start)):
        return None
    return start.type


def step_of(interval: object) -> IntervalParts:
    """The step's parts; of a NULL, none."""
    return IntervalParts(0, 0, 0) if interval is None else parts_of(str(interval))


def _starts_early(start: Scalar) -> bool:
    while isinstance(start, Call) and start.function == "cast":
        (start,) = start.arguments
    value = start.value if isinstance(start, Literal) else None
    return isinstance(value, date) and value.day <= _DAYS_OF_ALL_MONTHS


def sign(step: IntervalParts) -> int:
    """Whether the step leads forward (1), backward (-1) or nowhere."""
    length = step.months or step.days * DAY + step.micros
    return (length > 0) - (length < 0)


def spark_step(step: IntervalParts) -> Expression:
    """The step as an interval of Spark's."""
    if step.months:
        return spark_function("make_ym_interval", number(0), number(step.months))
    micros = step.days * DAY + step.micros
    seconds = spark_cast(exp.Literal.string(f"{Decimal(micros).scaleb(-6):f}"), _SECONDS)
    return spark_function("make_dt_interval", number(0), number(0), number(0), seconds)


def following(at: datetime, step: IntervalParts) -> datetime:
    """The time one step later."""
    month = at.month - 1 + step.months
    year, month = at.year + month // 12, month % 12 + 1
    day = min(at.day, calendar.monthrange(year, month)[1])
    moved = at.replace(year=year, month=month, day=day)
    return moved + timedelta(days=step.days, microseconds=step.micros)
