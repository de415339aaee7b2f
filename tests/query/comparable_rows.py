"""Rows of PostgreSQL and of the evaluator in a form in which they can be compared."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from headrace.types import Type


def bag(rows: Any, types: list[Type]) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(plain(value, type_) for value, type_ in zip(row, types, strict=True)) for row in rows
    )


def plain(value: Any, type_: Type) -> Any:
    match value:
        case list() | tuple():
            assert type_.element is not None
            return tuple(plain(each, type_.element) for each in value)
        case Decimal():
            # A quotient is right to its scale; PostgreSQL's own scale varies with the value.
            return round(value, 9) if type_.rounded else value
        case float():
            return "NaN" if math.isnan(value) else float(f"{value:.12e}")
        case UUID():
            return str(value)
        case str() if type_.kind == "character":
            return value.rstrip(" ")
        case datetime():
            return value.isoformat()
    return value
