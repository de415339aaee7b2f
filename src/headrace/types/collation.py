"""The collation of text that has none of its own: constants, casts, results of functions.

PostgreSQL gives such text the default collation of the database. Types are built deep inside of
function tables, so the database's collation is set once for all of them while a query is bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum

from headrace.types.type import Type


class Collation(StrEnum):
    """The classes of collations: C, the order of code points alone, or any other."""

    C = "C"
    CODE_POINTS = "C.UTF-8"
    OTHER = "other"


_TEXT = {
    Collation.C: Type("text", folds=True),
    Collation.CODE_POINTS: Type("text"),
    Collation.OTHER: Type("text", ordered=False),
}
_default: ContextVar[Collation] = ContextVar("default collation", default=Collation.OTHER)


@contextmanager
def default_collation(collation: Collation) -> Iterator[None]:
    """Set the collation that `plain_text` has within the block."""
    token = _default.set(collation)
    try:
        yield
    finally:
        _default.reset(token)


def plain_text() -> Type:
    """Return the type of text that has the default collation of the database."""
    return _TEXT[_default.get()]
