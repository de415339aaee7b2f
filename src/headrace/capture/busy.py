"""Errors of sources that cannot be taken in now, so that a cut is taken without them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import Transient, UserError
from headrace.source.table import SourceTable


class SourcesUnusable(Transient):
    """Some sources, by oid, are locked or lack a right, each with an error of its own.

    Nothing was done; the ingest takes the cut without these sources.
    """

    codes = {**Transient.codes, **UserError.codes}

    def __init__(self, why: Mapping[int, Transient | UserError]) -> None:
        first, *more = why.values()
        detail = "; ".join(error.message for error in more) or first.detail
        super().__init__(first.code, first.message, detail=detail, hint=first.hint)
        self.why = why


def busy_writers(table: SourceTable) -> Transient:
    """Return the error for a table whose writers hold the lock that a copy needs."""
    return _busy(f"a transaction that wrote to {table.schema}.{table.name} is still open")


def busy_owner(table: SourceTable) -> Transient:
    """Return the error for a table that another session's lock keeps from being read."""
    return _busy(f"{table.schema}.{table.name} is locked by another session")


def unreadable(table: SourceTable, role: str, detail: str | None) -> UserError:
    """Return the error for a table that the runtime role may not read any more."""
    name = f"{table.schema}.{table.name}"
    return UserError(
        "permission-denied",
        f"role {role} may not read {name}",
        detail=detail,
        hint=f"Let its owner run: GRANT SELECT ON {name} TO {role};",
    )


def _busy(message: str) -> Transient:
    return Transient("source-locked", message, hint="Try again when it has ended.")
