"""Sources that others keep busy: which they are, so that no other has to wait for them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import Transient
from headrace.source.table import SourceTable


class SourcesBusy(Transient):
    """`source-busy` for some sources, by oid, each with an error of its own; nothing was done."""

    def __init__(self, why: Mapping[int, Transient]) -> None:
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


def _busy(message: str) -> Transient:
    return Transient("source-busy", message, hint="Try again when it has ended.")
