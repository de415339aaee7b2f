"""Casts that mean the same in both engines; everything else is refused.

| from \\ to | integers | numeric(p,s) | floats | text | date, timestamp |
|---|---|---|---|---|---|
| integers | range checked | exact | nearest | decimal digits | – |
| numeric | rounded half away from zero | rounded half away from zero | nearest | – | – |
| floats | rounded half to even | – | real → double | – | – |
| text | – | – | – | cut to length | – |
| boolean | – | – | – | true, false | – |
| date | – | – | – | ISO | midnight |
| timestamp | – | – | – | – | date part |
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal

from sqlglot import exp

from headrace.functions.errors import EvaluationError
from headrace.functions.floats import as_stored
from headrace.functions.function import Function, spark_cast, spark_function
from headrace.functions.numbers import (
    DIGITS_OF_INTEGERS,
    as_numeric,
    fitted,
)
from headrace.plan.scalar import Value
from headrace.types import Type


def castable(source: Type, target: Type) -> bool:
    """Whether the cast has one meaning in both engines."""
    if source == target:
        return True
    if source.is_integer:
        return target.is_number or target.kind == "text"
    if source.kind == "numeric":
        return target.is_number
    if source.is_float:
        return target.is_integer or (source.kind, target.kind) == ("real", "double precision")
    if source.is_text:
        return target.is_text
    return (source.kind, target.kind) in {
        ("boolean", "text"),
        ("date", "text"),
        ("date", "timestamp"),
        ("timestamp", "date"),
        ("uuid", "text"),
        ("enum", "text"),
    }


def widening(source: Type, target: Type) -> bool:
    """Whether every value of the source type has a place in the target type."""
    if source.is_integer and target.is_integer:
        return DIGITS_OF_INTEGERS[source.kind] <= DIGITS_OF_INTEGERS[target.kind]
    if target.kind == "numeric" and (source.is_integer or source.kind == "numeric"):
        decimal = as_numeric(source)
        assert decimal.precision and target.precision
        whole = decimal.precision - (decimal.scale or 0)
        # Rounding 9.99 to one digit after the point needs a digit more before it.
        carry = (decimal.scale or 0) > (target.scale or 0)
        return whole + carry <= target.precision - (target.scale or 0)
    return not target.is_integer


def _spark(
    arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
) -> exp.Expression:
    (value,), (source,) = arguments, types
    if result.is_text and result.length is not None:
        value = spark_function("left", value, exp.Literal.number(result.length))
    if result.kind == "character":
        return spark_function("rtrim", value)
    if result.is_integer and source.kind == "numeric":
        value = spark_function("round", value)
    elif result.is_integer and source.is_float:
        value = spark_function("rint", value)
    return spark_cast(value, result)


def convert(value: Value, source: Type, target: Type) -> Value:
    """The cast on a Python value; None stays None."""
    if value is None or source == target:
        return value
    if target.is_integer:
        return _to_integer(value, source, target)
    if target.kind == "numeric":
        return fitted(Decimal(value), target)  # type: ignore[arg-type]
    if target.is_float:
        return _to_float(value, target)
    if target.is_text:
        return _to_text(value, target)
    if target.kind == "timestamp" and isinstance(value, date):
        return datetime.combine(value, time())
    if target.kind == "date" and isinstance(value, datetime):
        return value.date()
    raise AssertionError(f"no cast from {source.kind} to {target.kind}")


def _to_integer(value: Value, source: Type, target: Type) -> Value:
    if source.kind == "numeric":
        assert isinstance(value, Decimal)
        value = int(value.to_integral_value(rounding="ROUND_HALF_UP"))
    elif source.is_float:
        assert isinstance(value, float)
        if value != value or value in (float("inf"), float("-inf")):
            raise EvaluationError(f"{target.kind} out of range")
        value = round(value)
    return fitted(value, target)


def _to_float(value: Value, target: Type) -> Value:
    return as_stored(float(value), target)  # type: ignore[arg-type]


def _to_text(value: Value, target: Type) -> Value:
    match value:
        case bool():
            text = "true" if value else "false"
        case date():
            text = value.isoformat()
        case _:
            text = str(value)
    if target.length is not None:
        text = text[: target.length]
    return text.rstrip(" ") if target.kind == "character" else text


CASTS: tuple[Function, ...] = (
    # The target is the call's own type; `convert` evaluates it.
    Function(
        "cast", lambda _: None, _spark, lambda *_: None, "a::type, CAST(a AS type)", raises=True
    ),
)
