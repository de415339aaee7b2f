"""Sources that stream tables declare to be append-only: rows only come, none is changed or deleted.

Correctness does not rest on the declaration: every change is examined before it is taken in. The
declaration keeps the texts of queries the same, and requests an alert when it no longer holds.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.catalog import State, Transaction
from headrace.catalog.alert import alert_source
from headrace.catalog.records import Relation, Source
from headrace.store import Pin, Store

OPTION = "append_only"


def is_declared(state: State, source: Source) -> bool:
    """Return whether a reader declares the source append-only, and none declares the opposite."""
    declarations = {reader.options.get(OPTION) for reader in state.readers(source.relation)}
    return True in declarations and False not in declarations


def growing(state: State) -> frozenset[str]:
    """Return the relations of sources that are declared append-only and, as far as known, are."""
    return frozenset(
        source.relation
        for source in state.sources
        if source.shrunk_at is None and is_declared(state, source)
    )


def watched(store: Store, state: State, source: Source, before: Pin, relation: Relation) -> Source:
    """Return the source after its change was appended, with the first epoch that took rows away.

    `before` is the pin that its relation had. The epoch is recorded only while the source is
    declared append-only.
    """
    if not is_declared(state, source):
        return replace(source, shrunk_at=None)
    if source.shrunk_at is not None or relation.pin.epoch == before.epoch:
        return source
    added = store.files(relation.id, relation.pin, before.epoch, relation.pin.epoch)
    if all(file.only_adds for file in added):
        return source
    return replace(source, shrunk_at=relation.pin.epoch)


def reverted(source: Source) -> str:
    """Return the message about a declaration that does not hold."""
    return (
        f"declared append_only, and rows were updated or deleted (epoch {source.shrunk_at}):"
        " changes are taken in like those of any other table"
    )


def alert_if_reverted(
    transaction: Transaction, state: State, before: Source, after: Source
) -> None:
    """Send an alert at the first update or delete, if the transaction is committed."""
    if before.shrunk_at is None and after.shrunk_at is not None:
        alert_source(transaction, state.name_parts(after), "not-append-only", reverted(after))
