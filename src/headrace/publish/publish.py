"""Publish: what was computed becomes visible, in one transaction of the home database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headrace.catalog import Change, Transaction
from headrace.catalog.records import Refresh, Relation, Status, StreamTable
from headrace.engine import Engine
from headrace.publish.apply import apply_change
from headrace.publish.change import VisibleChange
from headrace.publish.replace import replace_served
from headrace.publish.served import create_served
from headrace.steps import Publish

NOTHING = Change()


@dataclass(frozen=True)
class Advanced:
    """A stream table computed up to an epoch and not yet visible.

    `relations` are those that its stages wrote, with their new pins; `change` is the netted
    change of its visible columns. A table that was made anew takes the place of `old`; then
    `change` has all of its rows.
    """

    table: StreamTable
    relations: tuple[Relation, ...]
    change: VisibleChange
    refresh: Refresh
    old: StreamTable | None = None


def publish(
    engine: Engine,
    advanced: tuple[Advanced, ...],
    *,
    as_of: datetime | None,
    fence: int,
    besides: Change = NOTHING,
) -> tuple[Refresh, ...]:
    """Pins, frontiers, served rows and history of all tables as one; the refreshes as recorded.

    A table that was never published gets its served table made in the same transaction; what else
    is recorded in it is `besides`.
    """
    now = datetime.now(UTC)
    tables = tuple(_published(one, as_of, now) for one in advanced)
    refreshes = tuple(_recorded(one, now) for one in advanced)

    def serve(transaction: Transaction) -> None:
        for one, table in zip(advanced, tables, strict=True):
            if one.old is not None:
                replace_served(transaction, one.old, table, one.change)
                continue
            if one.table.epoch == 0:
                create_served(transaction, table)
            apply_change(transaction, table, one.change)

    relations = tuple(relation for one in advanced for relation in one.relations)
    change = replace(
        besides,
        put=(*besides.put, *relations, *tables),
        refreshes=(*besides.refreshes, *refreshes),
    )
    with engine.step(Publish(tuple(table.relation for table in tables))):
        engine.catalog.commit(change, fence=fence, apply=serve)
    for one in advanced:
        one.change.discard()
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
    return replace(
        one.refresh,
        rows_inserted=one.change.inserted,
        rows_deleted=one.change.deleted,
        finished_at=now,
        versions={relation.id: relation.pin.version for relation in one.relations},
    )
