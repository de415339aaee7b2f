"""to_char of a timestamp, from patterns whose text is the same under every locale."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions.function import Function, spark_cast, spark_function
from headrace.functions.moments import TIMESTAMP, TIMESTAMPTZ
from headrace.functions.spark import case, number, plus, string
from headrace.types import TEXT, Type, plain_text

Expression = exp.Expression

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LONGEST_NAME = 9


def _spark(name: str) -> Callable[[Expression], Expression]:
    return lambda moment: spark_function(name, moment)


def _twelve(moment: Expression) -> Expression:
    shifted = exp.Paren(this=plus(spark_function("hour", moment), number(11)))
    return plus(exp.Paren(this=exp.Mod(this=shifted, expression=number(12))), number(1))


def _fraction(unit: int) -> Callable[[Expression], Expression]:
    def spark(moment: Expression) -> Expression:
        micros = spark_function("unix_micros", spark_cast(moment, TIMESTAMPTZ))
        fraction = spark_function("pmod", micros, number(1_000_000))
        return exp.Paren(this=exp.IntDiv(this=fraction, expression=number(unit)))

    return spark


# A number with so many digits: on Spark, in Python.
_NUMBERS: Mapping[str, tuple[int, Callable[[Expression], Expression], Callable[[Any], int]]] = {
    "YYYY": (4, _spark("year"), lambda m: m.year),
    "MM": (2, _spark("month"), lambda m: m.month),
    "DDD": (3, _spark("dayofyear"), lambda m: m.timetuple().tm_yday),
    "DD": (2, _spark("day"), lambda m: m.day),
    "D": (1, _spark("dayofweek"), lambda m: m.isoweekday() % 7 + 1),
    "ID": (1, lambda m: plus(spark_function("weekday", m), number(1)), lambda m: m.isoweekday()),
    "Q": (1, _spark("quarter"), lambda m: (m.month + 2) // 3),
    "IW": (2, _spark("weekofyear"), lambda m: m.isocalendar()[1]),
    "IYYY": (
        4,
        lambda m: exp.Extract(this=exp.var("YEAROFWEEK"), expression=m),
        lambda m: m.isocalendar()[0],
    ),
    "HH24": (2, _spark("hour"), lambda m: m.hour),
    "HH12": (2, _twelve, lambda m: (m.hour + 11) % 12 + 1),
    "HH": (2, _twelve, lambda m: (m.hour + 11) % 12 + 1),
    "MI": (2, _spark("minute"), lambda m: m.minute),
    "SS": (2, _spark("second"), lambda m: m.second),
    "MS": (3, _fraction(1000), lambda m: m.microsecond // 1000),
    "US": (6, _fraction(1), lambda m: m.microsecond),
}
# A name from a list by its number, and how wide PostgreSQL fills it up.
_NAMES: Mapping[str, tuple[tuple[str, ...], str, int]] = {
    "Month": (MONTHS, "MM", _LONGEST_NAME),
    "MONTH": (tuple(name.upper() for name in MONTHS), "MM", _LONGEST_NAME),
    "month": (tuple(name.lower() for name in MONTHS), "MM", _LONGEST_NAME),
    "Mon": (tuple(name[:3] for name in MONTHS), "MM", 0),
    "MON": (tuple(name[:3].upper() for name in MONTHS), "MM", 0),
    "mon": (tuple(name[:3].lower() for name in MONTHS), "MM", 0),
    "Day": (DAYS, "D", _LONGEST_NAME),
    "DAY": (tuple(name.upper() for name in DAYS), "D", _LONGEST_NAME),
    "day": (tuple(name.lower() for name in DAYS), "D", _LONGEST_NAME),
    "Dy": (tuple(name[:3] for name in DAYS), "D", 0),
    "DY": (tuple(name[:3].upper() for name in DAYS), "D", 0),
    "dy": (tuple(name[:3].lower() for name in DAYS), "D", 0),
}
_MAINTAINED = frozenset((*_NUMBERS, *_NAMES, "AM", "PM"))
# PostgreSQL takes the longest pattern that fits, so those that are not maintained are read too.
_OTHERS = (
    *("A.D.", "A.M.", "AD", "B.C.", "BC", "CC", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX"),
    *("I", "IDDD", "IY", "IYY", "J", "OF", "P.M.", "RM", "SSSS", "SSSSS", "TZ", "TZH", "TZM"),
    *("W", "WW", "Y", "Y,YYY", "YY", "YYY"),
)
_PATTERNS = {*_MAINTAINED, *_OTHERS, *(key.lower() for key in (*_NUMBERS, "AM", "PM", *_OTHERS))}
_KEYS = "|".join(map(re.escape, sorted(_PATTERNS, key=len, reverse=True)))
_PIECE = re.compile(rf'(FM)?({_KEYS})|"([^"\\]*)"|([^A-Za-z0-9"\\]+)')
# FM leaves these as wide as they are.
_FRACTIONS = ("MS", "US")


def pieces_of(format_: str) -> list[tuple[str, bool, str]] | None:
    """Return the format as (pattern, unpadded, literal text); None if it has anything else."""
    pieces, rest = _read(format_)
    return None if rest else pieces


def unmaintained(format_: str) -> str:
    """Return the first pattern or letter of the format that is not maintained; empty if all are."""
    _, rest = _read(format_)
    piece_match = _PIECE.match(rest)
    return piece_match[0] if piece_match else rest[:1]


def _read(format_: str) -> tuple[list[tuple[str, bool, str]], str]:
    """Return the pieces up to the first that is not maintained, and the text from there."""
    pieces: list[tuple[str, bool, str]] = []
    at = 0
    while at < len(format_):
        piece_match = _PIECE.match(format_, at)
        if piece_match is None:
            break
        fill, key, quoted, plain = piece_match.groups()
        # A suffix such as th changes what stands before it.
        suffix = format_[piece_match.end() :][:2].lower()
        if key and (key not in _MAINTAINED or suffix in ("th", "sp", "tm")):
            break
        pieces.append((key or "", bool(fill) and key not in _FRACTIONS, quoted or plain or ""))
        at = piece_match.end()
    return pieces, format_[at:]


def _type(arguments: Sequence[Scalar]) -> Type | None:
    moment, format_ = arguments
    if moment.type not in (TIMESTAMP, TIMESTAMPTZ) or not isinstance(format_, Literal):
        return None
    is_maintained = isinstance(format_.value, str) and pieces_of(format_.value)
    return plain_text() if is_maintained else None


def _char_spark(arguments: Sequence[Expression], *_: object) -> Expression:
    moment, format_ = arguments
    pieces = pieces_of(format_.name)
    assert pieces is not None
    texts = [_piece_spark(moment, *piece) for piece in pieces]
    # A format of plain text alone is still NULL for NULL.
    return case(
        exp.Is(this=moment.copy(), expression=exp.Null()),
        exp.Null(),
        spark_function("concat", *texts),
    )


def _piece_spark(moment: Expression, key: str, unpadded: bool, text: str) -> Expression:
    if not key:
        return string(text)
    if key in ("AM", "PM"):
        morning = exp.LT(this=spark_function("hour", moment.copy()), expression=number(12))
        return case(morning, string("AM"), string("PM"))
    if key in _NUMBERS:
        width, spark, _ = _NUMBERS[key]
        digits = spark_cast(spark(moment.copy()), TEXT)
        return digits if unpadded else spark_function("lpad", digits, number(width), string("0"))
    names, index, width = _NAMES[key]
    array = spark_function("array", *map(string, names))
    name = spark_function("element_at", array, _NUMBERS[index][1](moment.copy()))
    filled = width and not unpadded
    return spark_function("rpad", name, number(width), string(" ")) if filled else name


def _char(moment: datetime, format_: str) -> str:
    pieces = pieces_of(format_)
    assert pieces is not None
    return "".join(_piece(moment, *piece) for piece in pieces)


def _piece(moment: datetime, key: str, unpadded: bool, text: str) -> str:
    if not key:
        return text
    if key in ("AM", "PM"):
        return "AM" if moment.hour < 12 else "PM"
    if key in _NUMBERS:
        width, _, value = _NUMBERS[key]
        return f"{value(moment):0{0 if unpadded else width}d}"
    names, index, width = _NAMES[key]
    return names[_NUMBERS[index][2](moment) - 1].ljust(0 if unpadded else width)


FORMATS: tuple[Function, ...] = (
    Function(
        "to_char",
        _type,
        _char_spark,
        _char,
        "to_char(timestamp, 'format')",
        note="Patterns: "
        + ", ".join((*_NUMBERS, "Month", "Mon", "Day", "Dy", "AM"))
        + ", with FM, and punctuation or quoted text between them.",
    ),
)
