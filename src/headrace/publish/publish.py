"""Publish: make results visible, in one transaction of the home database."""

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
    """Serve no other table."""


@dataclass(frozen=True)
class Advanced:
    """A stream table computed up to an epoch and not yet visible.

    `relations` are those that its stages wrote, with their new pins; `change` is the netted
    change of its visible columns. `frontier` says how far it has taken in each of its inputs,
    `as_of` when the oldest cut behind it was taken. A rebuilt table takes the place of
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
    """Commit pins, frontiers, served rows and history of all tables; return their refreshes.

    Tables `unread` get no line of the history and no notification. `state` is what the tables were
    computed in: a table that was altered since is not published. The served table of a first
    publish is made in the same transaction. `besides` is recorded in it, too, and `serve_besides`
    may write other served tables.
    """
    now = datetime.now(UTC)
    tables = tuple(_published(result, now) for result in advanced)
    refreshes = tuple(_recorded(result, now) for result in advanced)
    settings = engine.settings(state)
    watched = tuple(table for table in tables if is_watched(table, settings))

    # Other threads of a daemon publish, too; a single process has time.
    shared = engine.shared is not None
    served = tuple(
        result.table for result in advanced if result.old is None and result.table.epoch > 0
    )

    def serve(transaction: Transaction) -> None:
        if shared:
            lock_served(transaction, served)
        with counting_own_scans(transaction, watched):
            write(transaction)

    def write(transaction: Transaction) -> None:
        last = LastSteps()
        for result, table in zip(advanced, tables, strict=True):
            if result.old is not None:
                replace_served(transaction, result.old, table, result.change)
                continue
            if result.table.epoch == 0:
                create_served(transaction, table)
            apply_change(transaction, table, result.change, last)
        serve_besides(transaction)
        last.perform()
        announce(transaction, tables)

    relations = tuple(relation for result in advanced for relation in result.relations)
    change = replace(
        besides,
        put=(
            *(replace(skipped.table, frontier=skipped.frontier) for skipped in unread),
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
    for result in advanced:
        result.change.discard()
    return refreshes


def _drop_leftovers(engine: Engine, advanced: tuple[Advanced, ...]) -> None:
    """Drop indexes of a crash, which refuse rows that break a key nobody declares."""
    tables = [result.table if result.old is None else result.old for result in advanced]
    if not tidy(engine.database, tables):
        raise Transient(
            "source-locked",
            "could not drop an index that an interrupted ALTER STREAM TABLE left",
            detail="It refuses rows of the publish, and others use its table.",
        )


def _require_same(moved: tuple[Advanced | Unread, ...], current: State) -> None:
    """Raise `cut-interrupted` for a table that was stopped or altered since it was computed."""
    for result in moved:
        recorded = current.origin(result.table.relation)
        if result.table.epoch > 0 and recorded != result.table:
            name = f"{result.table.schema}.{result.table.name}"
            raise Transient("cut-interrupted", f"{name} was changed while it was refreshed")


def _published(result: Advanced, now: datetime) -> StreamTable:
    return replace(
        result.table,
        status=Status.ACTIVE,
        awaits_rebuild=False,
        reason=None,
        frontier=result.frontier,
        epoch=result.refresh.epoch,
        as_of=result.as_of,
        failures=0,
        published_at=now,
    )


def _recorded(result: Advanced, now: datetime) -> Refresh:
    return replace(
        result.refresh,
        rows_inserted=result.change.inserted,
        rows_deleted=result.change.deleted,
        finished_at=now,
        versions={relation.id: relation.pin.version for relation in result.relations},
    )
