"""Publish: what was computed becomes visible, in one transaction of the home database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa

from headrace.catalog import Change, Transaction
from headrace.catalog.records import Refresh, Relation, Status, StreamTable
from headrace.engine import Engine
from headrace.publish.served import apply_change, count_rows, create_served
from headrace.steps import Publish


@dataclass(frozen=True)
class Advanced:
    """A stream table computed up to an epoch and not yet visible.

    `relations` are those that its stages wrote, with their new pins; `change` is the netted
    change of its visible columns.
    """

    table: StreamTable
    relations: tuple[Relation, ...]
    change: pa.Table
    refresh: Refresh


def publish(
    engine: Engine,
    advanced: tuple[Advanced, ...],
    *,
    as_of: datetime | None,
    fence: int,
) -> tuple[Refresh, ...]:
    """Pins, frontiers, served rows and history of all tables as one; the refreshes as recorded.

    A table that was never published gets its served table made in the same transaction.
    """
    now = datetime.now(UTC)
    tables = tuple(_published(one, as_of, now) for one in advanced)
    refreshes = tuple(_recorded(one, now) for one in advanced)

    def serve(transaction: Transaction) -> None:
        for one, table in zip(advanced, tables, strict=True):
            if one.table.epoch == 0:
                create_served(transaction, table)
            apply_change(transaction, table, one.change)

    relations = tuple(relation for one in advanced for relation in one.relations)
    change = Change(put=(*relations, *tables), refreshes=refreshes)
    with engine.step(Publish(tuple(table.relation for table in tables))):
        engine.catalog.commit(change, fence=fence, apply=serve)
    return refreshes


def _published(one: Advanced, as_of: datetime | None, now: datetime) -> StreamTable:
    return replace(
        one.table,
        status=Status.ACTIVE,
        reason=None,
        frontier=dict.fromkeys(one.table.inputs, one.refresh.epoch),
        epoch=one.refresh.epoch,
        as_of=as_of,
        published_at=now,
    )


def _recorded(one: Advanced, now: datetime) -> Refresh:
    inserted, deleted = count_rows(one.change)
    return replace(
        one.refresh,
        rows_inserted=inserted,
        rows_deleted=deleted,
        finished_at=now,
        versions={relation.id: relation.pin.version for relation in one.relations},
    )
