"""Constants: numbers as PostgreSQL types them, and strings whose type the context decides."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from uuid import UUID

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar, Value
from headrace.functions import common_type, convert
from headrace.functions.numbers import RANGE_OF_INTEGERS, fitted
from headrace.query.literal_texts import read_array, read_interval
from headrace.query.refusal import refuse, too_many_digits
from headrace.types import Type, array_of, result_numeric
from headrace.types.kinds import KIND_BY_NAME, MAXIMUM_DIGITS


@dataclass(frozen=True)
class Untyped:
    """A string constant or NULL (`text` None) that takes the type of what it meets."""

    text: str | None
    node: exp.Expr


Bound = Scalar | Untyped


def number(text: str, node: exp.Expr) -> Literal:
    """Return a numeric constant: integer, bigint or numeric by its size and spelling."""
    value = _decimal(text)
    if value is None:
        raise refuse("syntax-error", f"{text} is not a number", node)
    if re.fullmatch(r"-?[0-9]+", text):
        for kind in ("integer", "bigint"):
            if -RANGE_OF_INTEGERS[kind] <= value < RANGE_OF_INTEGERS[kind]:
                return Literal(int(value), Type(kind))
    return _numeric(value, node)


def interval_constant(node: exp.Interval) -> Literal:
    """Return INTERVAL '…', with or without a unit after it."""
    text, unit = node.this, node.args.get("unit")
    plain = isinstance(text, exp.Literal) and (unit is None or isinstance(unit, exp.Var))
    try:
        if not plain:
            raise ValueError(node)
        return Literal(read_interval(text.name, unit and unit.name), Type("interval"))
    except (ValueError, ArithmeticError):
        message = "this interval cannot be read"
        raise refuse("unsupported-query", message, node, KIND_BY_NAME["interval"].hint) from None


def typed(untyped: Untyped, type_: Type) -> Literal:
    """Return the constant as a value of `type_`, parsed strictly.

    Numeric and text keep their length.
    """
    text, node = untyped.text, untyped.node
    if type_.is_text:
        plain = Type("text", ordered=type_.ordered, folds=type_.folds)
        # Trailing blanks never count in a comparison with char(n), which is stored without them.
        strip = type_.kind == "character" and not type_.keeps_blanks
        return Literal(text.rstrip(" ") if strip and text is not None else text, plain)
    if text is None:
        return Literal(None, replace(type_.bare, length=type_.length))
    if type_.element is not None:
        return _array(untyped, type_.element.bare)
    if type_.kind == "numeric":
        value = _decimal(text.strip())
        if value is None:
            raise _unreadable(untyped, type_, type_.row.hint)
        return _numeric(value, node)
    try:
        return Literal(fitted(READERS[type_.kind](text), type_), type_)
    except (ValueError, ArithmeticError):
        raise _unreadable(untyped, type_, type_.row.hint) from None


def _array(untyped: Untyped, element: Type) -> Literal:
    """Return an array constant, its elements read as constants of their type.

    Numerics get digits enough for all.
    """
    assert untyped.text is not None
    try:
        texts = read_array(untyped.text)
    except ValueError:
        raise _unreadable(untyped, array_of(element), KIND_BY_NAME["array"].hint) from None
    items = [typed(Untyped(text, untyped.node), element) for text in texts]
    if element.kind == "numeric":
        types = [element, *(item.type for item in items)]
        common = common_type(types)
        if common is None:
            raise too_many_digits("an array", types, untyped.node)
        element = common
    return Literal(
        tuple(convert(item.value, item.type, element) for item in items), array_of(element)
    )


def _unreadable(untyped: Untyped, type_: Type, form: str) -> Exception:
    message = f"cannot read '{untyped.text}' as {type_.sql}"
    return refuse("unsupported-query", message, untyped.node, form)


def _decimal(text: str) -> Decimal | None:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _numeric(value: Decimal, node: exp.Expr) -> Literal:
    """Return a numeric with the digits that are written: 1.50 has scale 2, 1e3 scale 0."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > MAXIMUM_DIGITS:
        raise refuse("unsupported-type", f"{value} has more than {MAXIMUM_DIGITS} digits", node)
    type_ = result_numeric(precision, scale)
    return Literal(fitted(value, type_), type_)


def _strict(pattern: str, text: str) -> str:
    text = text.strip(" ")
    if not re.fullmatch(pattern, text, re.IGNORECASE | re.ASCII):
        raise ValueError(text)
    return text


def _boolean(text: str) -> Value:
    word = _strict("true|false|t|f|yes|no|y|n|on|off|1|0", text).lower()
    return word in ("true", "t", "yes", "y", "on", "1")


def _integer(text: str) -> Value:
    return int(_strict(r"[+-]?[0-9]+", text))


def _float(text: str) -> Value:
    number_ = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?"
    value = float(_strict(number_, text))
    if math.isinf(value):
        raise ValueError(text)
    return value


_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"


def _timestamp(text: str) -> Value:
    return datetime.fromisoformat(_padded(_strict(rf"{_DATE}([ T]{_TIME})?", text)))


def _time(text: str) -> Value:
    hours = "([01][0-9]|2[0-3])"
    text = _strict(rf"{hours}:[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,6}})?)?", text)
    text = text + ":00" if text.count(":") == 1 else text
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _timestamptz(text: str) -> Value:
    zone = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
    written = _strict(rf"{_DATE}([ T]{_TIME}( ?{zone})?)?", text)
    value = datetime.fromisoformat(_padded(written))
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _padded(text: str) -> str:
    """Return the text with six digits of a fraction: Python reads three or six of them only."""
    text = text.upper().replace(" ", "T", 1).replace(" ", "")
    return re.sub(r"\.([0-9]+)", lambda match: "." + match[1].ljust(6, "0"), text)


def _bytes(text: str) -> Value:
    return bytes.fromhex(_strict(r"\\x([0-9a-f]{2})*", text)[2:])


READERS: dict[str, Callable[[str], Value]] = {
    "boolean": _boolean,
    "smallint": _integer,
    "integer": _integer,
    "bigint": _integer,
    "real": _float,
    "double precision": _float,
    "bytea": _bytes,
    "date": lambda text: date.fromisoformat(_strict(_DATE, text)),
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "time": _time,
    "interval": read_interval,
    "uuid": lambda text: str(UUID(_strict(_UUID, text))),
    "enum": lambda text: text,
    # jsonb is carried as the text PostgreSQL prints, which only PostgreSQL can produce.
    "jsonb": lambda text: _strict("(?!)", text),
}
