"""Changing what is recorded of a stream table, and the name it is served under."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from headrace.catalog import Change, Transaction
from headrace.catalog.records import RefreshMode, StreamTable
from headrace.engine import Engine
from headrace.engine.steps import AlterTable, BuildIndex, DropIndex
from headrace.errors import HeadraceError, Transient
from headrace.graph.components import cycles
from headrace.lifecycle.cycle_members import full_in_cycle
from headrace.publish.lock import ATTEMPTS, PAUSE_SECONDS
from headrace.publish.partitioning import check_partition
from headrace.publish.reindex import build_beside, needs_index, take_over, tidy
from headrace.publish.replace import rename
from headrace.publish.served_key import check_key


def change(engine: Engine, old: StreamTable, new: StreamTable, fence: int) -> None:
    """Record the table as `new`, and rename what is served, in one transaction.

    One that is in a cycle cannot be FULL. Another index is built before, while the table is read.
    """
    if new == old:
        return
    if new.refresh_mode is RefreshMode.FULL and old.refresh_mode is not RefreshMode.FULL:
        _require_alone(engine, old)
    check_partition(new.columns, new.options)
    check_key(new.columns, new.key, new.options)
    reindexed = needs_index(engine.database, old, new)
    named_as_before = replace(new, schema=old.schema, name=old.name)
    if reindexed:
        with engine.step(BuildIndex(old.relation)):
            build_beside(engine.database, named_as_before)

    def apply(transaction: Transaction) -> None:
        if reindexed:
            take_over(transaction, old, named_as_before)
        rename(transaction, old, new)

    if not reindexed:
        _commit(engine, old, new, fence, apply)
        return
    try:
        _commit(engine, old, new, fence, apply, attempts=ATTEMPTS)
    except HeadraceError:
        with suppress(HeadraceError):
            _tidy(engine, old.relation)
        raise
    _tidy(engine, old.relation)


def _tidy(engine: Engine, relation: str) -> None:
    """Drop the index that the table does not ask for, as it is recorded now."""
    with engine.step(DropIndex(relation)):
        recorded = engine.catalog.state().origin(relation)
        tidy(engine.database, [recorded] if isinstance(recorded, StreamTable) else [])


def _commit(
    engine: Engine,
    old: StreamTable,
    new: StreamTable,
    fence: int,
    apply: Callable[[Transaction], None],
    *,
    attempts: int = 1,
) -> None:
    """Record the table as `new`; somebody who reads it may keep it locked for a while."""
    for attempt in range(1, attempts + 1):
        try:
            with engine.step(AlterTable(old.relation)):
                engine.catalog.commit(Change(put=(new,)), fence=fence, apply=apply)
            return
        except Transient as error:
            if error.code != "source-locked" or attempt == attempts:
                raise
        time.sleep(PAUSE_SECONDS)


def _require_alone(engine: Engine, table: StreamTable) -> None:
    if table.relation in cycles(engine.catalog.state().stream_tables):
        raise full_in_cycle((table.schema, table.name))
