"""Arrays as PostgreSQL reads them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def array_text(elements: Sequence[Any] | None) -> str | None:
    """Return the array as PostgreSQL writes it in a constant; None, which is NULL, for None."""
    if elements is None:
        return None
    return "{" + ",".join(map(_element, elements)) + "}"


def _element(value: Any) -> str:
    """Return the element, always quoted, so that no text reads as NULL or as two elements."""
    if value is None:
        return "NULL"
    escaped = _spelled(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _spelled(value: Any) -> str:
    match value:
        case bytes():
            return "\\x" + value.hex()
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return str(value)
