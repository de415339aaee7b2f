r"""Casts that mean the same in both engines, and text read as a value; other casts are refused.

| from \ to | integers | numeric(p,s) | floats | text | dates and timestamps |
|---|---|---|---|---|---|
| integers | range checked | exact | nearest | decimal digits | – |
| numeric | rounded half away from zero | rounded half away from zero | nearest | numeric(p,s) | – |
| floats | rounded half to even | – | nearest | – | – |
| text | read | read | read as double | cut to length | read |
| boolean | 0 and 1 | – | – | true, false | – |
| dates and timestamps | – | – | – | ISO | at midnight, in UTC |

Text is read strictly, so that it can mean one value only. PostgreSQL reads more forms than these
('1_000', '0x1f', 'Jan 8 1999', 'today'). A text in another form is an error here, never another
value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal

from sqlglot import exp

from headrace.algebra.scalar import Value
from headrace.functions.floats import as_stored, narrowed
from headrace.functions.function import EvaluationError, Function, spark_cast, spark_function
from headrace.functions.moments import stored_in_spark, stored_moment
from headrace.functions.numbers import DIGITS_OF_INTEGERS, as_numeric, fitted, round_to
from headrace.functions.spark import case, fails, let, string
from headrace.types import TEXT, Type

Expression = exp.Expression

_TRUE = "true|t|yes|y|on|1"


def readable(target: Type) -> bool:
    return target.row.form is not None


def _form(target: Type) -> str:
    if target.kind == "numeric" and not target.declared:
        # Digits beyond the stored scale would be lost; PostgreSQL keeps them.
        return rf"[+-]?([0-9]+(\.[0-9]{{0,{target.scale}}}0*)?|\.[0-9]{{1,{target.scale}}}0*)"
    form = target.row.form
    assert form is not None
    return form


def spark_read(text: Expression, target: Type) -> Expression:
    """Return the text as a value of the type on Spark; an error in any other form."""

    def read(found: Expression) -> Expression:
        fits = spark_function("rlike", found.copy(), string(f"\\A({_form(target)})\\z"))
        missing = exp.Is(this=found.copy(), expression=exp.Null())
        return case(
            missing,
            spark_cast(exp.Null(), target),
            fits,
            _value(found.copy(), target),
            fails(f"a text cannot be read as {target.kind}"),
        )

    return let((exp.Trim(this=text, expression=string(" "), position="BOTH"),), read)


def _value(text: Expression, target: Type) -> Expression:
    if target.kind == "boolean":
        return spark_function("rlike", text, string(f"\\A({_TRUE})\\z"))
    if target.kind in ("date", "timestamp"):
        return stored_in_spark(spark_cast(text, target), target)
    return spark_cast(text, target)


def read(text: str, target: Type) -> Value:
    """Return the text as a Python value of the type; EvaluationError in any other form."""
    text = text.strip(" ")
    if not re.fullmatch(_form(target), text, re.ASCII):
        raise EvaluationError(f"a text cannot be read as {target.kind}")
    try:
        return _python(text, target)
    except ValueError:
        raise EvaluationError(f"a text cannot be read as {target.kind}") from None


def _python(text: str, target: Type) -> Value:
    match target.kind:
        case "boolean":
            return re.fullmatch(_TRUE, text) is not None
        case "numeric":
            return fitted(Decimal(text), target)
        case "double precision":
            return float(text)
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            whole, _, fraction = text.replace(" ", "T").partition(".")
            moment = datetime.fromisoformat(whole)
            return stored_moment(moment.replace(microsecond=int(fraction.ljust(6, "0") or 0)))
        case "uuid":
            return text
    return fitted(int(text), target)


def castable(source: Type, target: Type) -> bool:
    """Return whether the cast has one meaning in both engines."""
    if source == target:
        return True
    if source.element is not None and target.element is not None:
        return castable(source.element, target.element)
    if source.is_integer:
        # PostgreSQL has a cast between boolean and integer, but none for the other integers.
        logical = (source.kind, target.kind) == ("integer", "boolean")
        return target.is_number or _is_sized_text(target) or logical
    if source.kind == "numeric":
        # The digits that a plain numeric shows are its own, not those that it is stored with.
        return target.is_number or (source.declared and _is_sized_text(target))
    if source.is_float:
        return target.is_integer or target.is_float
    if source.is_text:
        return target.is_text or readable(target)
    if source.is_moment and target.is_moment:
        return True
    if (source.kind, target.kind) == ("boolean", "integer"):
        return True
    return source.row.prints_alike and _is_sized_text(target)


def _is_sized_text(target: Type) -> bool:
    """Return whether values of other types are cast to the text: printed, and cut to its length."""
    return target.is_text and not target.keeps_blanks


def widening(source: Type, target: Type) -> bool:
    """Return whether every value of the source type has a place in the target type."""
    if source.element is not None and target.element is not None:
        return source.element == target.element or widening(source.element, target.element)
    if source.is_integer and target.is_integer:
        return DIGITS_OF_INTEGERS[source.kind] <= DIGITS_OF_INTEGERS[target.kind]
    if target.kind == "numeric" and (source.is_integer or source.kind == "numeric"):
        decimal = as_numeric(source)
        assert decimal.precision and target.precision
        whole = decimal.precision - (decimal.scale or 0)
        # Rounding 9.99 to one digit after the point needs a digit more before it.
        carry = (decimal.scale or 0) > (target.scale or 0)
        return whole + carry <= target.precision - (target.scale or 0)
    if source.is_text and not target.is_text:
        return False
    if source.kind == "boolean":
        return True
    return not target.is_integer and (source.kind, target.kind) != ("double precision", "real")


def _spark(
    arguments: Sequence[exp.Expression], types: Sequence[Type], result: Type
) -> exp.Expression:
    (value,), (source,) = arguments, types
    if source.element is not None and result.element is not None:
        item = exp.to_identifier("item")
        inside = _spark([exp.Column(this=item.copy())], [source.element], result.element)
        return spark_function("transform", value, exp.Lambda(this=inside, expressions=[item]))
    if source.is_text and not result.is_text:
        return spark_read(value, result)
    if source.kind == "timestamptz" and result.is_text:
        value = spark_function("concat", spark_cast(value, TEXT), exp.Literal.string("+00"))
    elif result.is_text and not source.is_text and result.length is not None:
        value = spark_cast(value, TEXT)
    if (source.kind, result.kind) == ("double precision", "real"):
        return let((value,), lambda wide: narrowed(wide, result))
    if result.keeps_blanks and source.length is not None and source.kind == "character":
        pad = exp.Literal.number(source.length), exp.Literal.string(" ")
        return spark_function("rpad", value, *pad)
    if source.keeps_blanks and result.is_text:
        value = spark_function("rtrim", value)
    if result.is_text and result.length is not None:
        value = spark_function("left", value, exp.Literal.number(result.length))
    if result.kind == "character" and not result.keeps_blanks:
        return spark_function("rtrim", value)
    if result.is_integer and source.kind == "numeric":
        value = spark_function("round", value)
    elif result.is_integer and source.is_float:
        value = spark_function("rint", value)
    return spark_cast(value, result)


def convert(value: Value, source: Type, target: Type) -> Value:
    """Return the cast on a Python value; None stays None."""
    if value is None or source == target:
        return value
    if isinstance(value, tuple):
        assert source.element is not None and target.element is not None
        return tuple(convert(each, source.element, target.element) for each in value)
    if source.is_text and not target.is_text:
        return read(str(value), target)
    if source.kind == "boolean" and target.is_integer:
        return int(value)  # type: ignore[arg-type]
    if target.is_integer:
        return _to_integer(value, source, target)
    if target.kind == "boolean":
        return value != 0
    if target.kind == "numeric":
        return fitted(Decimal(value), target)  # type: ignore[arg-type]
    if target.is_float:
        return _to_float(value, target)
    if target.is_text:
        return _to_text(value, source, target)
    if target.is_moment:
        return _to_moment(value, target)
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


def _to_moment(value: Value, target: Type) -> Value:
    assert isinstance(value, date)
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    match target.kind:
        case "date":
            return moment.date()
        case "timestamp":
            return moment.replace(tzinfo=None)
    return moment.replace(tzinfo=UTC)


def _to_float(value: Value, target: Type) -> Value:
    return as_stored(float(value), target)  # type: ignore[arg-type]


def _to_text(value: Value, source: Type, target: Type) -> Value:
    match value:
        case bool():
            text = "true" if value else "false"
        case datetime():
            text = _moment_text(value)
        case date():
            text = value.isoformat()
        case Decimal():
            text = f"{round_to(value, source.scale or 0):f}"
        case _:
            text = str(value)
    if target.keeps_blanks:
        padding = source.length if source.kind == "character" else None
        return text.ljust(padding or 0)
    if source.keeps_blanks:
        text = text.rstrip(" ")
    if target.length is not None:
        text = text[: target.length]
    return text.rstrip(" ") if target.kind == "character" else text


def _moment_text(moment: datetime) -> str:
    """Return the text that PostgreSQL prints: no zeros at the fraction's end, the zone as hours."""
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    text = text.rstrip("0") if "." in text else text
    return text if moment.tzinfo is None else text + "+00"


CASTS: tuple[Function, ...] = (
    # The target is the call's own type; `convert` evaluates it.
    Function(
        "cast", lambda _: None, _spark, lambda *_: None, "a::type, CAST(a AS type)", raises=True
    ),
)
