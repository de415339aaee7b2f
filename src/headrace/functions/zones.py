"""AT TIME ZONE and dates made of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo, available_timezones

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.errors import EvaluationError
from headrace.functions.function import Function, spark_cast, spark_function
from headrace.functions.let import let
from headrace.functions.moments import DATE, TIMESTAMP, TIMESTAMPTZ, stored_in_spark, stored_moment
from headrace.functions.spark import number, string, unless
from headrace.types import Type

Expression = exp.Expression


def _zone_type(arguments: Sequence[Scalar]) -> Type | None:
    """A place's time is clear on the way from UTC; on the way back it has gaps and doubles."""
    zone, moment = arguments
    if not isinstance(zone, Literal) or not isinstance(zone.value, str):
        return None
    if zone.value == "UTC":
        return {TIMESTAMP: TIMESTAMPTZ, TIMESTAMPTZ: TIMESTAMP}.get(moment.type)
    known = "/" in zone.value and zone.value in available_timezones()
    return TIMESTAMP if known and moment.type == TIMESTAMPTZ else None


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
        note="'UTC' both ways; a place as in 'Europe/Berlin' for timestamptz, by the rules of"
        " Spark's own time zone data.",
    ),
    Function("make_date", _date_type, _date_spark, _date, "make_date(y, m, d)", raises=True),
)
