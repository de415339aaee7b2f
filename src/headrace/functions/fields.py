"""EXTRACT, date_part and date_trunc: fields of dates, timestamps and intervals, in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.function import Function, spark_cast, spark_function
from headrace.functions.intervals import DAY, HOUR, MINUTE, SECOND, parts_of, spark_parts
from headrace.functions.moments import DATE, TIMESTAMP, TIMESTAMPTZ, micros_of
from headrace.functions.spark import let, number, plus, string, times
from headrace.types import Type, result_numeric

Expression = exp.Expression

_WHOLE = result_numeric(10, 0)
_SECONDS = result_numeric(8, 6)
_MILLISECONDS = result_numeric(8, 3)
_EPOCH = result_numeric(20, 6)


def _decade(year: Expression) -> Expression:
    return spark_cast(exp.Paren(this=exp.IntDiv(this=year, expression=number(10))), Type("integer"))


def _hundreds(size: int) -> Callable[[Expression], Expression]:
    """Return the rendering of centuries or millennia, which begin with the year 1."""

    def spark(moment: Expression) -> Expression:
        before = plus(spark_function("year", moment), number(size - 1))
        return exp.Paren(this=exp.IntDiv(this=before, expression=number(size)))

    return spark


def _part(name: str) -> Callable[[Expression], Expression]:
    return lambda moment: exp.Extract(this=exp.var(name), expression=moment)


# Fields of a date and of a timestamp alike: on Spark, in Python.
_DATED: Mapping[str, tuple[Callable[[Expression], Expression], Callable[[Any], int]]] = {
    "year": (lambda m: spark_function("year", m), lambda d: d.year),
    "quarter": (lambda m: spark_function("quarter", m), lambda d: (d.month + 2) // 3),
    "month": (lambda m: spark_function("month", m), lambda d: d.month),
    "week": (lambda m: spark_function("weekofyear", m), lambda d: d.isocalendar()[1]),
    "day": (lambda m: spark_function("day", m), lambda d: d.day),
    "dow": (
        lambda m: plus(spark_function("dayofweek", m), number(-1)),
        lambda d: d.isoweekday() % 7,
    ),
    "isodow": (
        lambda m: plus(spark_function("weekday", m), number(1)),
        lambda d: d.isoweekday(),
    ),
    "doy": (lambda m: spark_function("dayofyear", m), lambda d: d.timetuple().tm_yday),
    "isoyear": (_part("YEAROFWEEK"), lambda d: d.isocalendar()[0]),
    "decade": (lambda m: _decade(spark_function("year", m)), lambda d: d.year // 10),
    "century": (_hundreds(100), lambda d: (d.year + 99) // 100),
    "millennium": (_hundreds(1000), lambda d: (d.year + 999) // 1000),
}
_TIMED = ("hour", "minute", "second", "milliseconds", "microseconds")
_SCALED = {"second": _SECONDS, "milliseconds": _MILLISECONDS}
_OF_INTERVALS = ("year", "month", "day", "hour", "minute", "second", "epoch")
_SPELLINGS = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute",
    "seconds": "second", "millisecond": "milliseconds", "microsecond": "microseconds",
    "weeks": "week", "decades": "decade", "centuries": "century",
}  # fmt: skip


def field_name(written: str) -> str:
    """Return the field's one name among its spellings."""
    name = written.lower()
    return _SPELLINGS.get(name, name)


def field_type(field: str, source: Type) -> Type | None:
    """Return the numeric that EXTRACT gives; None where the field is not one of the type's."""
    if source.kind == "interval":
        has_field = field in _OF_INTERVALS
    elif source == DATE:
        has_field = field in _DATED or field == "epoch"
    elif source in (TIMESTAMP, TIMESTAMPTZ):
        has_field = field in _DATED or field in _TIMED or field == "epoch"
    else:
        has_field = False
    if not has_field:
        return None
    if field == "epoch":
        return {"date": result_numeric(12, 0), "interval": result_numeric(24, 6)}.get(
            source.kind, _EPOCH
        )
    return _SCALED.get(field, _WHOLE)


def _extract_type(arguments: Sequence[Scalar]) -> Type | None:
    field, moment = arguments
    if not isinstance(field, Literal) or not isinstance(field.value, str):
        return None
    return field_type(field.value, moment.type)


def _extract_spark(
    arguments: Sequence[Expression], types: Sequence[Type], result: Type
) -> Expression:
    field, moment = arguments
    return spark_cast(_field(field.name, moment, types[1], result), result)


def _field(field: str, moment: Expression, type_: Type, result: Type) -> Expression:
    if type_.kind == "interval":
        return let((moment,), lambda interval: _interval_field(field, interval))
    if field in _DATED:
        return _DATED[field][0](moment)
    if field == "epoch" and type_ == DATE:
        return times(spark_cast(spark_function("unix_date", moment), result), number(86_400))
    if field == "epoch":
        return _millionths(micros_of(moment, type_), result_numeric(18, 0))
    if field in ("hour", "minute"):
        return spark_function(field, moment)
    seconds = _part("SECOND")(moment)
    return times(
        seconds, number({"second": 1, "milliseconds": 1000, "microseconds": SECOND}[field])
    )


def _millionths(micros: Expression, type_: Type) -> Expression:
    millionth = spark_cast(string("0.000001"), result_numeric(6, 6))
    return times(spark_cast(micros, type_), millionth)


def _interval_field(field: str, interval: Expression) -> Expression:
    months, days, micros = spark_parts(interval)

    def over(value: Expression, by: int) -> Expression:
        return exp.Paren(this=exp.IntDiv(this=value, expression=number(by)))

    def rest(value: Expression, by: int) -> Expression:
        return exp.Paren(this=exp.Mod(this=value, expression=number(by)))

    match field:
        case "year":
            return over(months, 12)
        case "month":
            return rest(months, 12)
        case "day":
            return days
        case "hour":
            return over(micros, HOUR)
        case "minute":
            return over(rest(micros, HOUR), MINUTE)
        case "second":
            return _millionths(rest(micros, MINUTE), result_numeric(10, 0))
    # A year has 365.25 days here, a month of the rest 30.
    years = times(over(months, 12), number(1461 * DAY // 4 // SECOND))
    months_and_days = plus(
        times(rest(months.copy(), 12), number(30 * 86_400)), times(days, number(86_400))
    )
    whole = spark_cast(plus(years, months_and_days), result_numeric(18, 0))
    return plus(whole, _millionths(micros, result_numeric(19, 0)))


def _extract(field: str, moment: Any) -> Decimal:
    if isinstance(moment, str):
        return _of_interval(field, moment)
    if field in _DATED:
        return Decimal(_DATED[field][1](moment))
    if field == "epoch":
        if not isinstance(moment, datetime):
            return Decimal((moment - date(1970, 1, 1)).days * 86_400)
        start = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
        return Decimal((moment - start) // timedelta(microseconds=1)).scaleb(-6)
    micros = moment.second * SECOND + moment.microsecond
    match field:
        case "hour":
            return Decimal(moment.hour)
        case "minute":
            return Decimal(moment.minute)
        case "second":
            return Decimal(micros).scaleb(-6)
        case "milliseconds":
            return Decimal(micros).scaleb(-3)
    return Decimal(micros)


def _of_interval(field: str, text: str) -> Decimal:
    parts = parts_of(text)

    def over(value: int, by: int) -> tuple[int, int]:
        quotient = abs(value) // by * (1 if value >= 0 else -1)
        return quotient, value - quotient * by

    years, months = over(parts.months, 12)
    hours, rest = over(parts.micros, HOUR)
    minutes, micros = over(rest, MINUTE)
    whole = {"year": years, "month": months, "day": parts.days, "hour": hours, "minute": minutes}
    if field in whole:
        return Decimal(whole[field])
    if field == "second":
        return Decimal(micros).scaleb(-6)
    days = Decimal(years * 1461) / 4 + 30 * months + parts.days
    return days * 86_400 + Decimal(parts.micros).scaleb(-6)


_UNITS = (
    *("microseconds", "milliseconds", "second", "minute", "hour"),
    *("day", "week", "month", "quarter", "year"),
)


def _truncated_type(arguments: Sequence[Scalar]) -> Type | None:
    unit, moment = arguments
    is_unit = isinstance(unit, Literal) and unit.value in _UNITS
    return moment.type if is_unit and moment.type in (TIMESTAMP, TIMESTAMPTZ) else None


def _truncated_spark(
    arguments: Sequence[Expression], _: Sequence[Type], result: Type
) -> Expression:
    unit, moment = arguments
    name = unit.name.removesuffix("s")
    truncated = spark_function("date_trunc", string(name), spark_cast(moment, TIMESTAMPTZ))
    return spark_cast(truncated, result)


def _truncated(unit: str, moment: datetime) -> datetime:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "microseconds":
            return moment
        case "milliseconds":
            return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        case "second":
            return moment.replace(microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "week":
            return midnight - timedelta(days=moment.weekday())
        case "month":
            return midnight.replace(day=1)
        case "quarter":
            return midnight.replace(day=1, month=(moment.month - 1) // 3 * 3 + 1)
        case "year":
            return midnight.replace(day=1, month=1)
    return midnight


FIELDS: tuple[Function, ...] = (
    Function(
        "extract",
        _extract_type,
        _extract_spark,
        _extract,
        "extract(field FROM a), date_part('field', a)",
        note="Fields: " + ", ".join((*_DATED, *_TIMED, "epoch")) + ".",
    ),
    Function(
        "date_trunc",
        _truncated_type,
        _truncated_spark,
        _truncated,
        "date_trunc('unit', a)",
        note="Units: " + ", ".join(_UNITS) + ". A date becomes a timestamptz, as in PostgreSQL.",
    ),
)
