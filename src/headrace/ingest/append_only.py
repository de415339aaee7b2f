"""Sources that stream tables declare to be append-only: rows only come, none is changed or deleted.

Nothing rests on it: every change is looked at before it is taken in. It says what is expected, so
that the texts of queries stay the same, and that somebody wants to know when it no longer holds.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.catalog import State, Transaction
from headrace.catalog.alert import alert_source
from headrace.catalog.records import Relation, Source
from headrace.store import Pin, Store

OPTION = "append_only"


def is_declared(state: State, source: Source) -> bool:
    """Whether a stream table that reads the source says so, and none says that it is not."""
    asked = {reader.options.get(OPTION) for reader in state.readers(source.relation)}
    return True in asked and False not in asked


def growing(state: State) -> frozenset[str]:
    """The relations of sources that were declared to be append-only, and are as far as is known."""
    return frozenset(
        source.relation
        for source in state.sources
        if source.shrunk_at is None and is_declared(state, source)
    )


def watched(store: Store, state: State, source: Source, before: Pin, relation: Relation) -> Source:
    """The source after its change was appended: the first that takes rows away is remembered.

    `before` is the pin that its relation had. Where nobody declares anything, there is nothing to
    remember.
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
    """What has come of a declaration that does not hold."""
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
