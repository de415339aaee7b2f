"""Publish: what was computed becomes visible, in one transaction of the home database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog import Catalog, Change, Transaction
from headrace.catalog.records import Refresh, Relation, Status, StreamTable
from headrace.publish.served import apply_change, create_served
from headrace.store import WEIGHT


def count_rows(change: pa.Table) -> tuple[int, int]:
    """The rows that a netted change inserts and deletes."""
    weights = change[WEIGHT]
    inserted = pc.sum(pc.if_else(pc.greater(weights, 0), weights, 0)).as_py() or 0
    deleted = pc.sum(pc.if_else(pc.less(weights, 0), pc.negate(weights), 0)).as_py() or 0
    return inserted, deleted


def publish(
    catalog: Catalog,
    table: StreamTable,
    relations: tuple[Relation, ...],
    change: pa.Table,
    refresh: Refresh,
    *,
    as_of: datetime | None,
    fence: int,
) -> Refresh:
    """Pins, frontier, served rows and history as one; the refresh as it is recorded.

    `relations` carry their new pins, `change` is the netted change of the visible columns. A
    table that was never published gets its served table made in the same transaction.
    """
    published = replace(
        table,
        status=Status.ACTIVE,
        reason=None,
        frontier=dict.fromkeys(table.inputs, refresh.epoch),
        epoch=refresh.epoch,
        as_of=as_of,
        published_at=datetime.now(UTC),
    )
    inserted, deleted = count_rows(change)
    done = replace(
        refresh,
        rows_inserted=inserted,
        rows_deleted=deleted,
        finished_at=datetime.now(UTC),
        versions={relation.id: relation.pin.version for relation in relations},
    )

    def serve(transaction: Transaction) -> None:
        if table.epoch == 0:
            create_served(transaction, published)
        apply_change(transaction, published, change)

    catalog.commit(Change(put=(*relations, published), refreshes=(done,)), fence=fence, apply=serve)
    return done
