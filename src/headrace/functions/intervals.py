"""Intervals: months, days and microseconds, as the text that PostgreSQL prints in ISO 8601.

That text is canonical: two intervals have the same months, days and microseconds exactly if they
have the same text. PostgreSQL's own `=` is wider (a month is 30 days, a day 24 hours), so an
interval is never compared itself, but by `interval value`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.algebra.scalar import Scalar
from headrace.functions.function import EvaluationError, Function, spark_cast, spark_function
from headrace.functions.spark import case, fails, let, long, minus, number, plus, string, times
from headrace.types import Type, result_numeric

Expression = exp.Expression

INTERVAL = Type("interval")
MONTHS_OF_YEAR, DAYS_OF_MONTH = 12, 30
SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
_FORM = (
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)
_VALUE = result_numeric(28, 0)
_SECONDS = result_numeric(18, 6)


@dataclass(frozen=True)
class IntervalParts:
    """The parts of an interval."""

    months: int
    days: int
    micros: int

    @property
    def text(self) -> str:
        """As PostgreSQL prints it with intervalstyle iso_8601."""
        if not (self.months or self.days or self.micros):
            return "PT0S"
        years, months = _divided(self.months, MONTHS_OF_YEAR)
        hours, rest = _divided(self.micros, HOUR)
        minutes, rest = _divided(rest, MINUTE)
        dated = _part(years, "Y") + _part(months, "M") + _part(self.days, "D")
        timed = _part(hours, "H") + _part(minutes, "M") + _seconds(rest)
        return "P" + dated + ("T" + timed if timed else "")


def parts_of(text: str) -> IntervalParts:
    """Return the parts of a text in ISO 8601; ValueError for any other."""
    interval_match = re.fullmatch(_FORM, text, re.ASCII)
    if interval_match is None:
        raise ValueError(text)
    years, months, days, hours, minutes = (int(interval_match[i] or 0) for i in range(1, 6))
    sign, whole, fraction = re.fullmatch(r"(-?)(\d+)\.?(\d*)", interval_match[6] or "0").groups()  # type: ignore[union-attr]
    micros = int(whole) * SECOND + int(fraction.ljust(6, "0") or 0)
    micros = -micros if sign else micros
    time = hours * HOUR + minutes * MINUTE + micros
    return IntervalParts(years * MONTHS_OF_YEAR + months, days, time)


def _divided(value: int, by: int) -> tuple[int, int]:
    quotient = abs(value) // by * (1 if value >= 0 else -1)
    return quotient, value - quotient * by


def _part(value: int, unit: str) -> str:
    return f"{value}{unit}" if value else ""


def _seconds(micros: int) -> str:
    if not micros:
        return ""
    whole, fraction = divmod(abs(micros), SECOND)
    digits = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{'-' if micros < 0 else ''}{whole}{digits}S"


def spark_parts(interval: Expression) -> tuple[Expression, Expression, Expression]:
    """Return the months, days and microseconds of an interval's text, as BIGINTs."""
    if isinstance(interval, exp.Literal):
        parts = parts_of(interval.name)
        return number(parts.months), number(parts.days), number(parts.micros)

    def field(group: int, type_: Type) -> Expression:
        # In a Spark string a backslash is written as it is: sqlglot escapes it.
        group_text = spark_function(
            "regexp_extract", interval.copy(), string(f"^{_FORM}$"), number(group)
        )
        present = spark_function("nullif", group_text, string(""))
        zero = spark_cast(number(0), type_)
        read = spark_function("coalesce", spark_cast(present, type_), zero)
        # A NULL interval has NULL parts.
        return case(exp.Is(this=interval.copy(), expression=exp.Null()), exp.Null(), read)

    bigint = Type("bigint")
    months = plus(times(field(1, bigint), number(12)), field(2, bigint))
    seconds = long(times(field(6, _SECONDS), number(SECOND)))
    hours = times(field(4, bigint), number(HOUR))
    time = plus(plus(hours, times(field(5, bigint), number(MINUTE))), seconds)
    return months, field(3, bigint), time


def spark_text(months: Expression, days: Expression, micros: Expression) -> Expression:
    """Return the canonical text of the parts, which are BIGINTs."""

    def written(months: Expression, days: Expression, micros: Expression) -> Expression:
        def part(value: Expression, unit: str) -> Expression:
            text = spark_function("concat", spark_cast(value.copy(), Type("text")), string(unit))
            return case(_is(value, 0), string(""), text)

        rest = _rest(micros, MINUTE)
        fraction = spark_function("abs", _rest(micros, SECOND))
        digits = spark_function("lpad", spark_cast(fraction, Type("text")), number(6), string("0"))
        trimmed = exp.Trim(this=digits, expression=string("0"), position="TRAILING")
        point = spark_function("concat", string("."), trimmed)
        seconds = spark_function(
            "concat",
            case(exp.LT(this=rest.copy(), expression=number(0)), string("-"), string("")),
            spark_cast(spark_function("abs", _quotient(rest, SECOND)), Type("text")),
            case(_is(fraction.copy(), 0), string(""), point),
            string("S"),
        )
        text = spark_function(
            "concat",
            string("P"),
            part(_quotient(months, 12), "Y"),
            part(_rest(months, 12), "M"),
            part(days, "D"),
            case(_is(micros.copy(), 0), string(""), string("T")),
            part(_quotient(micros, HOUR), "H"),
            part(_quotient(_rest(micros, HOUR), MINUTE), "M"),
            case(_is(rest.copy(), 0), string(""), seconds),
        )
        zero = exp.and_(_is(months.copy(), 0), _is(days.copy(), 0), _is(micros.copy(), 0))
        return case(zero, string("PT0S"), text)

    return let((months, days, micros), written)


def _is(value: Expression, constant: int) -> Expression:
    return exp.EQ(this=value.copy(), expression=number(constant))


def _quotient(value: Expression, by: int) -> Expression:
    return exp.Paren(this=exp.IntDiv(this=value.copy(), expression=number(by)))


def _rest(value: Expression, by: int) -> Expression:
    return exp.Paren(this=exp.Mod(this=value.copy(), expression=number(by)))


def _all_intervals(result: Type) -> Callable[[Sequence[Scalar]], Type | None]:
    return lambda arguments: result if all(a.type == INTERVAL for a in arguments) else None


def _value(text: str) -> int:
    parts = parts_of(text)
    return (parts.months * DAYS_OF_MONTH + parts.days) * DAY + parts.micros


def _value_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    def value(interval: Expression) -> Expression:
        months, days, micros = spark_parts(interval)
        whole = plus(times(months, number(DAYS_OF_MONTH)), days)
        return spark_cast(
            plus(
                times(spark_cast(whole, result_numeric(12, 0)), number(DAY)),
                spark_cast(micros, result_numeric(19, 0)),
            ),
            _VALUE,
        )

    return let(arguments, value)


def checked(months: int, days: int, micros: int) -> str:
    """Return the text of the parts, if PostgreSQL has place for them."""
    for value, limit in ((months, 2**31), (days, 2**31), (micros, 2**63)):
        if not -limit <= value < limit:
            raise EvaluationError("interval out of range")
    return IntervalParts(months, days, micros).text


def spark_checked(months: Expression, days: Expression, micros: Expression) -> Expression:
    """Return the text of the parts on Spark, or an error; BIGINTs that overflow failed already."""

    def fitting(months: Expression, days: Expression, micros: Expression) -> Expression:
        def fits(value: Expression) -> Expression:
            return exp.Between(this=value.copy(), low=number(-(2**31)), high=number(2**31 - 1))

        inside = exp.and_(fits(months), fits(days))
        text = spark_text(months, days, micros)
        return case(
            inside,
            text,
            exp.Is(this=months.copy(), expression=exp.Null()),
            exp.Null(),
            fails("interval out of range"),
        )

    return let((months, days, micros), fitting)


def _sum_spark(join: Callable[[Expression, Expression], Expression]) -> Callable[..., Expression]:
    def spark(arguments: Sequence[Expression], *_: object) -> Expression:
        left, right = (spark_parts(argument) for argument in arguments)
        return spark_checked(*(join(a, b) for a, b in zip(left, right, strict=True)))

    return spark


def _sum(sign: int) -> Callable[[str, str], str]:
    def evaluate(left: str, right: str) -> str:
        a, b = parts_of(left), parts_of(right)
        return checked(
            a.months + sign * b.months, a.days + sign * b.days, a.micros + sign * b.micros
        )

    return evaluate


INTERVALS: tuple[Function, ...] = (
    Function(
        "interval value",
        _all_intervals(_VALUE),
        _value_spark,
        _value,
        "interval = interval, interval < interval",
        note="A month counts as 30 days and a day as 24 hours, as in PostgreSQL.",
    ),
    Function(
        "interval +",
        _all_intervals(INTERVAL),
        _sum_spark(plus),
        _sum(1),
        "interval + interval",
        raises=True,
    ),
    Function(
        "interval -",
        _all_intervals(INTERVAL),
        _sum_spark(minus),
        _sum(-1),
        "interval - interval, -interval",
        raises=True,
    ),
)
