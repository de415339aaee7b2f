"""Calls that are more than one row of the table: variadic ones, and those of several rows.

Each takes bound arguments; the caller adds the place in the text to their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from headrace.algebra.scalar import Literal, Scalar
from headrace.errors import UserError
from headrace.functions import call, cast
from headrace.functions.fields import field_name
from headrace.functions.formats import unmaintained
from headrace.functions.moments import DATE, TIMESTAMP, TIMESTAMPTZ
from headrace.functions.numbers import as_numeric
from headrace.query.arithmetic import folded
from headrace.query.coerce import operands, settled
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.matching import constant, folding, padded
from headrace.types import BOOLEAN, DOUBLE, INTEGER, Type, plain_text

Special = Callable[[Sequence[Bound]], Scalar]


def counted(name: str, arguments: Sequence[Bound], least: int, most: int) -> None:
    """Raise UserError if there are too few or too many arguments."""
    if not least <= len(arguments) <= most:
        count = str(most) if least == most else f"{least} to {most}"
        noun = "argument" if most == 1 else "arguments"
        message = f"{name} takes {count} {noun}, not {len(arguments)}"
        raise UserError("invalid-query", message)


def _printed(bound: Bound) -> Scalar:
    """Return a value as its output function prints it, which concat and its like show."""
    scalar = settled(bound)
    if scalar.type == BOOLEAN:
        letters = call("case", scalar, Literal("t", plain_text()), Literal("f", plain_text()))
        return call("case", call("is null", scalar), Literal(None, plain_text()), letters)
    return padded(scalar) if scalar.type.is_text else cast(scalar, plain_text())


def _concat_ws(arguments: Sequence[Bound]) -> Scalar:
    separator, *rest = arguments
    return call("concat_ws", settled(separator), *map(_printed, rest))


def _length(arguments: Sequence[Bound]) -> Scalar:
    counted("length", arguments, 1, 1)
    value = settled(arguments[0])
    return call("octet_length" if value.type.kind == "bytea" else "length", value)


def _regexp_like(arguments: Sequence[Bound]) -> Scalar:
    counted("regexp_like", arguments, 2, 3)
    text, pattern, *rest = arguments
    flags = constant(rest[0]) if rest else ""
    if flags not in ("", "i"):
        hint = "Only the flag 'i' is maintained."
        raise UserError("unsupported-function", "regexp_like with these flags", hint=hint)
    subject = padded(settled(text))
    name = "~*" if flags else "~"
    return call(name, folding(subject, name) if flags else subject, settled(pattern))


def _cased(name: str) -> Special:
    def special(arguments: Sequence[Bound]) -> Scalar:
        counted(name, arguments, 1, 1)
        return call(name, folding(settled(arguments[0]), name))

    return special


def _as_floats(name: str, integers: Callable[[Type], bool]) -> Special:
    """Return the binder of a function of one number.

    Integers have no such function of their own and become double precision.
    """

    def special(arguments: Sequence[Bound]) -> Scalar:
        counted(name, arguments, 1, 1)
        (bound,) = arguments
        value = typed(bound, DOUBLE) if isinstance(bound, Untyped) else bound
        if integers(value.type):
            value = cast(value, DOUBLE)
        return call(name, value)

    return special


def _inexact(type_: Type) -> bool:
    return type_.is_integer or type_.kind == "real"


def _rounded(name: str) -> Special:
    """Return the binder of round or trunc; with a number of digits the result is numeric."""

    def special(arguments: Sequence[Bound]) -> Scalar:
        counted(name, arguments, 1, 2)
        value = settled(arguments[0])
        if len(arguments) == 2:
            digits = arguments[1]
            count = typed(digits, INTEGER) if isinstance(digits, Untyped) else digits
            exact = cast(value, as_numeric(value.type)) if value.type.is_integer else value
            return call(name, exact, count)
        if value.type.kind == "numeric":
            return call(name, value, Literal(0, INTEGER))
        return call(f"{name} float", cast(value, DOUBLE) if _inexact(value.type) else value)

    return special


def _each(name: str, most: int = 100) -> Special:
    def special(arguments: Sequence[Bound]) -> Scalar:
        counted(name, arguments, 1, most)
        return call(name, *map(settled, arguments))

    return special


def _mod(arguments: Sequence[Bound]) -> Scalar:
    counted("mod", arguments, 2, 2)
    return call("%", *operands(arguments[0], arguments[1]))


def _extract(arguments: Sequence[Bound]) -> Scalar:
    counted("extract", arguments, 2, 2)
    field, moment = arguments
    return call("extract", Literal(field_name(constant(field)), plain_text()), settled(moment))


def _date_part(arguments: Sequence[Bound]) -> Scalar:
    return cast(_extract(arguments), DOUBLE)


def _date_trunc(arguments: Sequence[Bound]) -> Scalar:
    counted("date_trunc", arguments, 2, 3)
    if len(arguments) == 3:
        hint = "Write date_trunc('unit', a AT TIME ZONE 'zone') AT TIME ZONE 'zone'."
        raise UserError("unsupported-function", "date_trunc with a time zone", hint=hint)
    unit, moment = arguments
    value = settled(moment)
    if value.type == DATE:
        value = cast(value, TIMESTAMPTZ)
    return folded("date_trunc", Literal(field_name(constant(unit)), plain_text()), value)


def _to_char(arguments: Sequence[Bound]) -> Scalar:
    counted("to_char", arguments, 2, 2)
    moment, format_ = arguments
    value = settled(moment)
    if value.type == DATE:
        value = cast(value, TIMESTAMP)
    format_text = constant(format_)
    if value.type in (TIMESTAMP, TIMESTAMPTZ) and (pattern := unmaintained(format_text)):
        hint = "See docs/sql.md for the patterns that are maintained."
        raise UserError("unsupported-function", f"to_char with the pattern {pattern}", hint=hint)
    return call("to_char", value, Literal(format_text, plain_text()))


def _timezone(arguments: Sequence[Bound]) -> Scalar:
    counted("timezone", arguments, 2, 2)
    zone, moment = arguments
    value = typed(moment, TIMESTAMPTZ) if isinstance(moment, Untyped) else moment
    if value.type == DATE:
        value = cast(value, TIMESTAMPTZ)
    name = constant(zone)
    return folded(
        "timezone", Literal("UTC" if name.upper() == "UTC" else name, plain_text()), value
    )


def _isfinite(arguments: Sequence[Bound]) -> Scalar:
    """Return true for every value but NULL: stored values are finite."""
    counted("isfinite", arguments, 1, 1)
    value = settled(arguments[0])
    if value.type not in (DATE, TIMESTAMP, TIMESTAMPTZ, Type("interval")):
        raise UserError("invalid-query", f"isfinite of {value.type.sql}")
    return call("case", call("is null", value), Literal(None, BOOLEAN), Literal(True, BOOLEAN))


SPECIAL: Mapping[str, Special] = {
    "abs": _each("abs", 1),
    "cardinality": _each("cardinality", 1),
    "ceil": _as_floats("ceil", _inexact),
    "ceiling": _as_floats("ceil", _inexact),
    "concat": lambda arguments: call("concat", *map(_printed, arguments)),
    "concat_ws": _concat_ws,
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "extract": _extract,
    "floor": _as_floats("floor", _inexact),
    "isfinite": _isfinite,
    "jsonb_array_length": _each("jsonb_array_length", 1),
    "jsonb_typeof": _each("jsonb_typeof", 1),
    "length": _length,
    "lower": _cased("lower"),
    "mod": _mod,
    "num_nonnulls": _each("num_nonnulls"),
    "num_nulls": _each("num_nulls"),
    "octet_length": lambda arguments: call(
        "octet_length", *(padded(settled(a)) for a in arguments)
    ),
    "regexp_like": _regexp_like,
    "round": _rounded("round"),
    "sign": _as_floats("sign", _inexact),
    "sqrt": _as_floats("sqrt", _inexact),
    "timezone": _timezone,
    "to_char": _to_char,
    "trunc": _rounded("trunc"),
    "upper": _cased("upper"),
}
