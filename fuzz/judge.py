"""When two answers are the same: as bags, up to the stated exceptions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from headrace.types import Type

# PostgreSQL rounds quotients below 10^8 to 12 digits or more; a few less are compared, after both
# were rounded to as many.
COMMON, DIGITS = Decimal(1).scaleb(-12), Decimal(1).scaleb(-9)
Rows = Counter[tuple[Any, ...]]


def comparable(value: Any, type_: Type) -> Any:
    """The value with rounded numerics and floats to nine digits, and without blanks of char(n)."""
    match value:
        case None:
            return None
        case Decimal():
            return value.quantize(COMMON).quantize(DIGITS) if type_.rounded else value
        case float():
            # A difference of rounding near zero is one of nothing.
            return "nan" if math.isnan(value) else f"{round(value, 9) + 0.0:.9g}"
        case str() if type_.kind == "character":
            return value.rstrip(" ")
        case memoryview():
            return bytes(value)
        case UUID():
            return str(value)
        case list() | tuple():
            return tuple(comparable(one, type_) for one in value)
    return value


def bag(rows: Iterable[Sequence[Any]], types: Sequence[Type]) -> Rows:
    return Counter(
        tuple(comparable(value, type_) for value, type_ in zip(row, types, strict=True))
        for row in rows
    )


def difference(got: Rows, wanted: Rows) -> str:
    """A few rows of each side that the other has not."""
    missing, surplus = wanted - got, got - wanted
    return (
        f"missing {sum(missing.values())}: {list(missing.items())[:3]}"
        f" surplus {sum(surplus.values())}: {list(surplus.items())[:3]}"
    )
