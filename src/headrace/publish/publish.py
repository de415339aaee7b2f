"""Publish: what was computed becomes visible, in one transaction of the home database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headrace.catalog import Change, State, Transaction
from headrace.catalog.records import Refresh, Relation, Status, StreamTable
from headrace.engine import Engine
from headrace.engine.steps import Publish
from headrace.errors import InternalError, Transient
from headrace.publish.announce import announce
from headrace.publish.apply import apply_change
from headrace.publish.last_steps import LastSteps
from headrace.publish.lock import ATTEMPTS, PAUSE_SECONDS, lock_served
from headrace.publish.own_scans import counting_own_scans
from headrace.publish.reindex import is_refused_by_ours, tidy
from headrace.publish.replace import replace_served
from headrace.publish.served import create_served
from headrace.relations.visible_change import VisibleChange
from headrace.schedule.tiers import is_watched

NOTHING = Change()

# What is done to served tables in a transaction.
Serve = Callable[[Transaction], None]


def serve_nothing(transaction: Transaction) -> None:
    """No other table is served."""


@dataclass(frozen=True)
class Advanced:
    """A stream table computed up to an epoch and not yet visible.

    `relations` are those that its stages wrote, with their new pins; `change` is the netted
    change of its visible columns. `frontier` says how far it has taken in each of its inputs,
    `as_of` when the oldest cut behind it was taken. A table that was made anew takes the place of
    `old`; then `change` has all of its rows.
    """

    table: StreamTable
    relations: tuple[Relation, ...]
    change: VisibleChange
    refresh: Refresh
    frontier: Mapping[str, int]
    as_of: datetime | None
    old: StreamTable | None = None


@dataclass(frozen=True)
class Unread:
    """A stream table that reads nothing of what changed: only its `frontier` moves."""

    table: StreamTable
    frontier: Mapping[str, int]


def publish(
    engine: Engine,
    advanced: tuple[Advanced, ...],
    state: State,
    *,
    fence: int,
    unread: tuple[Unread, ...] = (),
    besides: Change = NOTHING,
    serve_besides: Serve = serve_nothing,
) -> tuple[Refresh, ...]:
    """Pins, frontiers, served rows and history of all tables as one; the refreshes as recorded.

    Of those `unread` nothing is told: neither history nor listeners hear of them. `state` is what
    they were computed in: a table that is another by now is not published. One that was never
    published gets its served table made in the same transaction; what else is recorded in it is
    `besides`, what else is served `serve_besides`.
    """
    now = datetime.now(UTC)
    tables = tuple(_published(one, now) for one in advanced)
    refreshes = tuple(_recorded(one, now) for one in advanced)
    settings = engine.settings(state)
    watched = tuple(table for table in tables if is_watched(table, settings))

    # A daemon's other threads publish, too; who is alone has time.
    shared = engine.shared is not None
    there = tuple(one.table for one in advanced if one.old is None and one.table.epoch > 0)

    def serve(transaction: Transaction) -> None:
        if shared:
            lock_served(transaction, there)
        with counting_own_scans(transaction, watched):
            write(transaction)

    def write(transaction: Transaction) -> None:
        last = LastSteps()
        for one, table in zip(advanced, tables, strict=True):
            if one.old is not None:
                replace_served(transaction, one.old, table, one.change)
                continue
            if one.table.epoch == 0:
                create_served(transaction, table)
            apply_change(transaction, table, one.change, last)
        serve_besides(transaction)
        last.perform()
        announce(transaction, tables)

    relations = tuple(relation for one in advanced for relation in one.relations)
    change = replace(
        besides,
        put=(
            *(replace(one.table, frontier=one.frontier) for one in unread),
            *besides.put,
            *relations,
            *tables,
        ),
        refreshes=(*besides.refreshes, *refreshes),
    )
    with engine.step(Publish(tuple(table.relation for table in tables))):
        tidied = False
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with engine.changing(state) as current:
                    _require_same((*advanced, *unread), current)
                    engine.catalog.commit(change, fence=fence, apply=serve)
                break
            except Transient as error:
                if error.code != "source-locked" or not shared or attempt == ATTEMPTS:
                    raise
                time.sleep(PAUSE_SECONDS)
            except InternalError as error:
                if tidied or attempt == ATTEMPTS or not is_refused_by_ours(error.__cause__):
                    raise
                _drop_leftovers(engine, advanced)
                tidied = True
    for one in advanced:
        one.change.discard()
    return refreshes


def _drop_leftovers(engine: Engine, advanced: tuple[Advanced, ...]) -> None:
    """Drop indexes of a crash, which refuse rows that break a key nobody declares."""
    tables = [one.table if one.old is None else one.old for one in advanced]
    if not tidy(engine.database, tables):
        raise Transient(
            "source-locked",
            "could not drop an index that an interrupted ALTER STREAM TABLE left",
            detail="It refuses rows of the publish, and others use its table.",
        )


def _require_same(moved: tuple[Advanced | Unread, ...], current: State) -> None:
    """What somebody stopped or altered meanwhile is not overwritten."""
    for one in moved:
        known = current.origin(one.table.relation)
        if one.table.epoch > 0 and known != one.table:
            name = f"{one.table.schema}.{one.table.name}"
            raise Transient("cut-interrupted", f"{name} was changed while it was refreshed")


def _published(one: Advanced, now: datetime) -> StreamTable:
    return replace(
        one.table,
        status=Status.ACTIVE,
        awaits_rebuild=False,
        reason=None,
        frontier=one.frontier,
        epoch=one.refresh.epoch,
        as_of=one.as_of,
        failures=0,
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
