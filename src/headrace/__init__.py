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

    __version__: str

__all__ = [
    "Headrace",
    "HeadraceError",
    "InternalError",
    "NeedsReinit",
    "SchemaChanged",
    "Transient",
    "Unavailable",
    "UserError",
    "__version__",
    "connect",
]


def __getattr__(name: str) -> Any:
    """Load what takes time when it is first asked for: `headrace --help` is quick."""
    if name in ("Headrace", "connect"):
        from headrace import api

        return getattr(api, name)
    if name == "__version__":
        from importlib.metadata import version

        return version("headrace")
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
