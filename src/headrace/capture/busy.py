"""Sources that cannot be taken in now: which they are, so that no other has to wait for them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import Transient, UserError
from headrace.source.table import SourceTable


class SourcesUnusable(Transient):
    """Some sources, by oid, are locked or lack a right, each with an error of its own.

    Nothing was done; whoever takes a cut leaves them out of it.
    """

    codes = {**Transient.codes, **UserError.codes}

    def __init__(self, why: Mapping[int, Transient | UserError]) -> None:
        first, *more = why.values()
        detail = "; ".join(one.message for one in more) or first.detail
        super().__init__(first.code, first.message, detail=detail, hint=first.hint)
        self.why = why


def busy_writers(table: SourceTable) -> Transient:
    """Whoever wrote to the table holds what is needed before it is copied."""
    return _busy(f"a transaction that wrote to {table.schema}.{table.name} is still open")


def busy_owner(table: SourceTable) -> Transient:
    """Whoever alters the table keeps others from reading it."""
    return _busy(f"{table.schema}.{table.name} is locked by another session")


def unreadable(table: SourceTable, role: str, detail: str | None) -> UserError:
    """The runtime role may not read the table any more."""
    name = f"{table.schema}.{table.name}"
    return UserError(
        "permission-denied",
        f"role {role} may not read {name}",
        detail=detail,
        hint=f"Let its owner run: GRANT SELECT ON {name} TO {role};",
    )


def _busy(message: str) -> Transient:
    return Transient("source-locked", message, hint="Try again when it has ended.")
