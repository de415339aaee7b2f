"""Alter stream tables: their query, their options, their name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from headrace.catalog import Change, Transaction
from headrace.catalog.records import RefreshMode, StreamTable
from headrace.engine import Engine
from headrace.engine.steps import AlterTable, BuildIndex, DropIndex
from headrace.errors import HeadraceError, Transient, UserError
from headrace.graph.components import cycles
from headrace.lifecycle.build import build
from headrace.lifecycle.capture_requirements import check_modes, reset_shrunk_sources
from headrace.lifecycle.cycle_members import full_in_cycle
from headrace.lifecycle.names import parse_name, quoted_name
from headrace.lifecycle.partitioning import needs_rebuild, partitions_differ
from headrace.lifecycle.planned_table import TableRequest, check_free
from headrace.lifecycle.planning import plan
from headrace.lifecycle.repair import damaged_sources
from headrace.lifecycle.table_spec import ALTERED, REPARTITIONED, TableSpec
from headrace.publish.lock import ATTEMPTS, PAUSE_SECONDS
from headrace.publish.partition_scheme import OPTION, SOURCE
from headrace.publish.partitioning import check_partition
from headrace.publish.reindex import build_beside, needs_index, take_over, tidy
from headrace.publish.replace import rename
from headrace.publish.served_key import check_key
from headrace.refresh.refresh import require_table
from headrace.statements.options import checked
from headrace.statements.options import refresh_mode as refresh_mode_of


class Keep(Enum):
    """The mark of a value that stays as it is; None is a value like others."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True)
class Alteration:
    """The requested changes; None among `options` resets one to its default."""

    query: str | Keep = KEEP
    schedule: str | Keep | None = KEEP
    refresh_mode: RefreshMode | Keep = KEEP
    rename_to: str | Keep = KEEP
    options: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        values: Mapping[str, Any], *, query: str | Keep = KEEP, rename_to: str | Keep = KEEP
    ) -> Alteration:
        """Return the alteration for options as users give them, KEEP included."""
        options = checked({option: v for option, v in values.items() if v is not KEEP})
        if "initialize" in options:
            raise UserError(
                "invalid-option",
                "initialize says how a stream table is created, and cannot be altered",
                hint="Refresh the stream table to fill it.",
            )
        schedule = options.pop("schedule", KEEP)
        mode = refresh_mode_of(options.pop("refresh_mode")) if "refresh_mode" in options else KEEP
        return Alteration(query, schedule, mode, rename_to, options)


def alter(engine: Engine, schema: str, name: str, alteration: Alteration) -> StreamTable:
    """Alter the table, all of it or nothing.

    Another query recomputes the table and all that read it, and brings the served table to the new
    rows and columns in place. So do other partitions, for which the served table is rebuilt.
    A table that was never filled stays without rows.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        old = require_table(state, schema, name)
        new = _changed(old, alteration)
        if (new.schema, new.name) != (old.schema, old.name):
            with engine.database.session() as connection:
                check_free(connection, state, new.schema, new.name)
        taking_over = alteration.options.get(OPTION) == SOURCE
        rebuilt = taking_over or needs_rebuild(old.options, new.options)
        if new.query == old.query and not rebuilt:
            check_modes(engine, state, state.with_origins([new]))
            change(engine, old, new, lease.fence)
        else:
            request = TableRequest(
                quoted_name(new.schema, new.name),
                new.query,
                new.schedule,
                new.refresh_mode,
                dict(new.options),
                initialize=not old.is_uninitialized,
            )
            parted = new.query == old.query and partitions_differ(old.options, new.options)
            reason = REPARTITIONED if parted else ALTERED
            spec = TableSpec(reason, request, old)
            build(engine, plan(engine, state, [spec], damaged_sources(engine, state)), lease.fence)
        reset_shrunk_sources(engine, state, lease.fence)
        return require_table(engine.catalog.state(), new.schema, new.name)


def _changed(table: StreamTable, alteration: Alteration) -> StreamTable:
    if not isinstance(alteration.query, Keep):
        table = replace(table, query=alteration.query)
    if not isinstance(alteration.schedule, Keep):
        table = replace(table, schedule=alteration.schedule)
    if not isinstance(alteration.refresh_mode, Keep):
        table = replace(table, refresh_mode=alteration.refresh_mode)
    if not isinstance(alteration.rename_to, Keep):
        schema, name = parse_name(alteration.rename_to, table.schema)
        table = replace(table, schema=schema, name=name)
    options = {**table.options, **alteration.options}
    return replace(table, options={name: v for name, v in options.items() if v is not None})


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
    """Drop indexes that the table, as it is recorded now, does not need."""
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
    """Record the table as `new`; retry while a reader holds a lock on the served table."""
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
