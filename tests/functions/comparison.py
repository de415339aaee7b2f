"""Comparison of the answers of two engines."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from headrace.algebra.scalar import Value
from headrace.types import Type
from tests.functions.engines import Answer, Failed


def beyond(answer: Answer, type_: Type) -> bool:
    """An error, or a numeric of more digits than our decimals hold: then we must fail too."""
    if isinstance(answer, Failed):
        return True
    if type_.kind != "numeric" or not isinstance(answer, Decimal):
        return False
    assert type_.precision is not None and type_.scale is not None
    return abs(rounded(answer, type_.scale)) >= Decimal(10) ** (type_.precision - type_.scale)


WIDE = Context(prec=200, rounding=ROUND_HALF_UP)


def rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), context=WIDE)


def same(theirs: Answer, ours: Answer, type_: Type) -> bool:
    if beyond(theirs, type_) or isinstance(ours, Failed):
        return beyond(theirs, type_) and isinstance(ours, Failed)
    if theirs is None or ours is None:
        return theirs is ours
    if type_.element is not None:
        return same_elements(theirs, ours, type_.element)
    if isinstance(theirs, float) and isinstance(ours, float):
        return same_float(theirs, ours, type_)
    if isinstance(theirs, Decimal) and isinstance(ours, Decimal):
        return same_decimal(theirs, ours, type_)
    return str(plain(theirs, type_)) == str(plain(ours, type_))


def same_elements(theirs: Any, ours: Any, type_: Type) -> bool:
    pairs = zip(theirs, ours, strict=False)
    return len(theirs) == len(ours) and all(same(a, b, type_) for a, b in pairs)


def same_float(a: float, b: float, type_: Type) -> bool:
    if type_.kind == "real":
        # PostgreSQL prints the shortest digits that name the value, Python reads them as a double.
        a, b = (struct.unpack("<f", struct.pack("<f", x))[0] for x in (a, b))
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def same_decimal(theirs: Decimal, ours: Decimal, type_: Type) -> bool:
    if not type_.rounded:
        return theirs == ours
    exponent = theirs.as_tuple().exponent
    assert isinstance(exponent, int) and type_.scale is not None
    scale = min(max(-exponent, 0), type_.scale)
    ulp = Decimal(1).scaleb(-scale)
    return abs(rounded(theirs, scale) - rounded(ours, scale)) <= ulp


def plain(value: Value, type_: Type) -> object:
    if type_.kind == "character" and isinstance(value, str):
        return value.rstrip(" ")
    return value


def too_far(answer: Answer) -> bool:
    """A point in time that sources cannot have: we may fail, or give the same."""
    if not isinstance(answer, datetime):
        return False
    zoned = answer.tzinfo is not None
    first = datetime(1, 1, 2, tzinfo=UTC) if zoned else datetime(1, 1, 1)  # noqa: DTZ001
    return not first <= answer < datetime(9999, 12, 31, tzinfo=answer.tzinfo)


def agree(theirs: Answer, ours: Answer, type_: Type) -> bool:
    if isinstance(ours, Failed) or beyond(theirs, type_):
        return isinstance(ours, Failed) and (beyond(theirs, type_) or too_far(theirs))
    return same(theirs, ours, type_)
