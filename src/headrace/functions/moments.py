"""Arithmetic with dates, timestamps and intervals, AT TIME ZONE, and dates made of numbers."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.function import (
    EvaluationError,
    Function,
    Rendering,
    spark_cast,
    spark_function,
)
from headrace.functions.intervals import (
    DAY,
    INTERVAL,
    IntervalParts,
    parts_of,
    spark_parts,
    spark_text,
)
from headrace.functions.spark import case, fails, let, minus, number, plus, string, times, unless
from headrace.types import INTEGER, Type, result_numeric

Expression = exp.Expression

DATE, TIMESTAMP, TIMESTAMPTZ = Type("date"), Type("timestamp"), Type("timestamptz")
_SECONDS = result_numeric(18, 6)
FIRST = datetime(1, 1, 1)  # noqa: DTZ001
FIRST_IN_UTC = datetime(1, 1, 2, tzinfo=UTC)
END = datetime(9999, 12, 31)  # noqa: DTZ001


def stored_moment(value: datetime) -> datetime:
    """Return the timestamp, if it is within what can be stored; see `types.KINDS`."""
    zoned = value.tzinfo is not None
    first, end = (FIRST_IN_UTC, END.replace(tzinfo=UTC)) if zoned else (FIRST, END)
    if not first <= value < end:
        raise EvaluationError("timestamp does not fit")
    return value


def stored_in_spark(value: Expression, type_: Type) -> Expression:
    """Return the date or timestamp; an error if it is beyond what can be stored."""
    assert type_.row.bounds is not None
    first, last = type_.row.bounds

    def check(moment: Expression) -> Expression:
        low, high = (spark_cast(string(text), type_) for text in (first, last))
        fits = exp.Between(this=moment.copy(), low=low, high=high)
        missing = exp.Is(this=moment.copy(), expression=exp.Null())
        return case(fits, moment.copy(), missing, exp.Null(), fails(f"{type_.kind} does not fit"))

    return let((value,), check)


def micros_of(value: Expression, type_: Type) -> Expression:
    """Return microseconds since 1970 of a date or timestamp; the session's time zone is UTC."""
    if type_ == TIMESTAMPTZ:
        return spark_function("unix_micros", value)
    return spark_function("unix_micros", spark_cast(value, TIMESTAMPTZ))


def _days_type(arguments: Sequence[Scalar]) -> Type | None:
    day, count = arguments
    return DATE if day.type == DATE and count.type.kind in ("smallint", "integer") else None


def _days_spark(name: str) -> Rendering:
    def spark(arguments: Sequence[Expression], *_: object) -> Expression:
        day, count = arguments
        return stored_in_spark(spark_function(name, day, spark_cast(count, INTEGER)), DATE)

    return spark


def _days(sign: int) -> Callable[[date, int], date]:
    def evaluate(day: date, count: int) -> date:
        try:
            return day + timedelta(days=sign * count)
        except OverflowError:
            raise EvaluationError("date does not fit") from None

    return evaluate


def _moved_type(arguments: Sequence[Scalar]) -> Type | None:
    moment, interval = arguments
    if interval.type != INTERVAL:
        return None
    return {DATE: TIMESTAMP, TIMESTAMP: TIMESTAMP, TIMESTAMPTZ: TIMESTAMPTZ}.get(moment.type)


def _moved_spark(sign: int) -> Rendering:
    """Return the rendering that adds months first, then days, then the time, as both engines do."""

    def spark(arguments: Sequence[Expression], types: Sequence[Type], result: Type) -> Expression:
        moment, interval = arguments
        months, days, micros = (times(number(sign), part) for part in spark_parts(interval))
        digits = spark_cast(micros, result_numeric(20, 0))
        millionth = spark_cast(string("0.000001"), result_numeric(6, 6))
        step = spark_function(
            "make_interval",
            number(0),
            spark_cast(months, INTEGER),
            number(0),
            spark_cast(days, INTEGER),
            number(0),
            number(0),
            spark_cast(times(digits, millionth), _SECONDS),
        )
        start = spark_cast(moment, result) if types[0] == DATE else moment
        return stored_in_spark(plus(start, step), result)

    return spark


def _moved(sign: int) -> Callable[[Any, str], datetime]:
    def evaluate(moment: Any, interval: str) -> datetime:
        parts = parts_of(interval)
        if not isinstance(moment, datetime):
            moment = datetime.combine(moment, time())
        try:
            return stored_moment(_add(moment, parts, sign))
        except (OverflowError, ValueError):
            raise EvaluationError("timestamp does not fit") from None

    return evaluate


def _add(moment: datetime, parts: IntervalParts, sign: int) -> datetime:
    month = moment.year * 12 + moment.month - 1 + sign * parts.months
    year, zero_based = divmod(month, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    last = calendar.monthrange(year, zero_based + 1)[1]
    moment = moment.replace(year=year, month=zero_based + 1, day=min(moment.day, last))
    return moment + timedelta(days=sign * parts.days, microseconds=sign * parts.micros)


def _between_type(arguments: Sequence[Scalar]) -> Type | None:
    left, right = arguments
    alike = left.type == right.type and left.type in (TIMESTAMP, TIMESTAMPTZ)
    return INTERVAL if alike else None


def _between_spark(arguments: Sequence[Expression], types: Sequence[Type], _: Type) -> Expression:
    left, right = (micros_of(a, type_) for a, type_ in zip(arguments, types, strict=True))

    def text(micros: Expression) -> Expression:
        days = exp.Paren(this=exp.IntDiv(this=micros.copy(), expression=number(DAY)))
        rest = exp.Paren(this=exp.Mod(this=micros.copy(), expression=number(DAY)))
        zero = spark_cast(times(number(0), micros.copy()), Type("bigint"))
        return spark_text(zero, days, rest)

    return let((minus(left, right),), text)


def _between(left: datetime, right: datetime) -> str:
    micros = (left - right) // timedelta(microseconds=1)
    days = abs(micros) // DAY * (1 if micros >= 0 else -1)
    return IntervalParts(0, days, micros - days * DAY).text


MOMENTS: tuple[Function, ...] = (
    Function("date +", _days_type, _days_spark("date_add"), _days(1), "date + n", raises=True),
    Function("date -", _days_type, _days_spark("date_sub"), _days(-1), "date - n", raises=True),
    Function(
        "days between",
        lambda a: INTEGER if a[0].type == a[1].type == DATE else None,
        lambda a, *_: spark_function("datediff", *a),
        lambda left, right: (left - right).days,
        "date - date",
    ),
    Function(
        "moment +",
        _moved_type,
        _moved_spark(1),
        _moved(1),
        "date + interval, timestamp + interval, timestamptz + interval",
        raises=True,
        note="A timestamptz moves in UTC, the time zone of Headrace's sessions.",
    ),
    Function(
        "moment -",
        _moved_type,
        _moved_spark(-1),
        _moved(-1),
        "date - interval, timestamp - interval, timestamptz - interval",
        raises=True,
    ),
    Function(
        "time between",
        _between_type,
        _between_spark,
        _between,
        "timestamp - timestamp, timestamptz - timestamptz",
    ),
)


def _zone_type(arguments: Sequence[Scalar]) -> Type | None:
    """Return the type of a time AT TIME ZONE.

    A place's time is accepted from UTC only: to UTC, local times have gaps and repetitions.
    """
    zone, moment = arguments
    if not isinstance(zone, Literal) or not isinstance(zone.value, str):
        return None
    if zone.value == "UTC":
        return {TIMESTAMP: TIMESTAMPTZ, TIMESTAMPTZ: TIMESTAMP}.get(moment.type)
    is_place = "/" in zone.value and zone.value in available_timezones()
    return TIMESTAMP if is_place and moment.type == TIMESTAMPTZ else None


def _zone_spark(arguments: Sequence[Expression], _: object, result: Type) -> Expression:
    zone, moment = arguments
    if zone.name == "UTC":
        return spark_cast(moment, result)
    utc = spark_cast(moment, TIMESTAMP)
    local = spark_function("convert_timezone", string("UTC"), string(zone.name), utc)
    return stored_in_spark(local, result)


def _zone(zone: str, moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    if zone == "UTC":
        return moment.replace(tzinfo=None)
    try:
        return stored_moment(moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None))
    except OverflowError:
        raise EvaluationError("timestamp does not fit") from None


def _date_type(arguments: Sequence[Scalar]) -> Type | None:
    whole = all(argument.type.kind in ("smallint", "integer") for argument in arguments)
    return DATE if whole and len(arguments) == 3 else None


def _date_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def made(year: Expression, month: Expression, day: Expression) -> Expression:
        outside = exp.Not(
            this=exp.Paren(this=exp.Between(this=year.copy(), low=number(1), high=number(9999)))
        )
        date_ = spark_function("make_date", year, month, day)
        return unless(outside, "date out of range", date_, month, day)

    return let(arguments, made)


def _date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise EvaluationError("date out of range") from None


ZONES: tuple[Function, ...] = (
    Function(
        "timezone",
        _zone_type,
        _zone_spark,
        _zone,
        "a AT TIME ZONE 'zone', timezone('zone', a)",
        raises=True,
        note="'UTC' in both directions; a place as in 'Europe/Berlin' for timestamptz, by the rules"
        " of Spark's own time zone data.",
    ),
    Function("make_date", _date_type, _date_spark, _date, "make_date(y, m, d)", raises=True),
)
