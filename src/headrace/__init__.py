"""Headrace keeps stream tables fresh: SQL over PostgreSQL, maintained incrementally by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import (
    HeadraceError,
    InternalError,
    NeedsReinit,
    SchemaChanged,
    Transient,
    Unavailable,
    UserError,
)

if TYPE_CHECKING:
    from headrace.api import Headrace, connect

__all__ = [
    "Headrace",
    "HeadraceError",
    "InternalError",
    "NeedsReinit",
    "SchemaChanged",
    "Transient",
    "Unavailable",
    "UserError",
    "connect",
]


def __getattr__(name: str) -> Any:
    """Load `connect` and `Headrace` when they are first asked for: `headrace --help` is quick."""
    if name in ("Headrace", "connect"):
        from headrace import api

        return getattr(api, name)
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")
