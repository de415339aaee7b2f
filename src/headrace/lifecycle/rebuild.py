"""Suspend, resume, refresh and rebuild stream tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from headrace.catalog import Change, State
from headrace.catalog.records import Refresh, RefreshMode, Status, StreamTable, is_stale
from headrace.engine import Engine
from headrace.engine.steps import AlterTable
from headrace.errors import UserError
from headrace.graph import downstream, upstream
from headrace.graph.components import cycles
from headrace.lifecycle.alter import change
from headrace.lifecycle.build import NOT_FILLED, build
from headrace.lifecycle.capture_requirements import reset_shrunk_sources
from headrace.lifecycle.drift import changed_views, fits_inputs
from headrace.lifecycle.name_resolver import NameResolver
from headrace.lifecycle.planned_table import FIRST
from headrace.lifecycle.planning import plan
from headrace.lifecycle.repair import damaged_sources
from headrace.lifecycle.table_spec import TableSpec, why_rebuilt
from headrace.refresh.change_size import was_stopped_by_limit
from headrace.refresh.refresh import refresh_table, require_active, require_table
from headrace.refresh.scope import together

BY_HAND = "suspended by hand"


class ResumeMode(StrEnum):
    """How to resume a table that `max_change_rows` suspended."""

    APPLY = "apply"
    REBUILD = "rebuild"


def suspend(engine: Engine, schema: str, name: str) -> StreamTable:
    """Stop refreshing the table until it is resumed; what it serves stays readable."""
    with engine.writing() as lease:
        table = require_table(engine.catalog.state(), schema, name)
        stopped = table.status is Status.SUSPENDED
        suspended_table = replace(
            table,
            status=Status.SUSPENDED,
            reason=table.reason if stopped else BY_HAND,
            held=True,
        )
        change(engine, table, suspended_table, lease.fence)
        return suspended_table


def resume_mode(mode: str | None) -> ResumeMode | None:
    """Return the mode of that name; None rebuilds only if needed."""
    if mode is None:
        return None
    try:
        return ResumeMode(mode.lower())
    except ValueError:
        raise UserError(
            "invalid-option", f"invalid resume mode {mode!r}: must be apply or rebuild"
        ) from None


def resume(engine: Engine, schema: str, name: str, mode: ResumeMode | None = None) -> StreamTable:
    """Resume the table; rebuild it unless it was only suspended by hand.

    A table without rows that was suspended by hand waits for its first refresh again. APPLY takes
    in the change that was larger than `max_change_rows`.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        if table.status is Status.ACTIVE:
            return table
        if mode is ResumeMode.APPLY:
            _apply(engine, state, table, lease.fence)
        elif mode is ResumeMode.REBUILD:
            _rebuild(engine, state, {table.relation: "resumed"}, lease.fence)
        elif table.held and table.is_uninitialized:
            waiting = replace(table, status=Status.INITIALIZING, reason=NOT_FILLED, held=False)
            change(engine, table, waiting, lease.fence)
        elif table.held and not is_stale(table) and _fits_inputs(engine, state, table):
            going = replace(
                table, status=Status.ACTIVE, reason=None, held=False, awaits_rebuild=False
            )
            change(engine, table, going, lease.fence)
        else:
            if table.held and table.reason != BY_HAND:
                # If the rebuild fails, the table is as it was before it was suspended by hand.
                change(engine, table, replace(table, held=False), lease.fence)
                state = engine.catalog.state()
            _rebuild(engine, state, {table.relation: "resumed"}, lease.fence)
        return require_table(engine.catalog.state(), schema, name)


def _apply(engine: Engine, state: State, table: StreamTable, fence: int) -> None:
    """Refresh a table that max_change_rows has suspended, with all changes, whatever their number.

    Tables of a cycle were stopped together.
    """
    if (
        not was_stopped_by_limit(engine, table)
        or is_stale(table)
        or not _fits_inputs(engine, state, table)
    ):
        raise UserError(
            "invalid-option",
            f"{table.schema}.{table.name} was not suspended by max_change_rows",
            detail=table.reason,
            hint="Resume the stream table without apply.",
        )
    cycle = cycles(state.stream_tables).get(table.relation, frozenset({table.relation}))
    stopped = [table for table in state.stream_tables if table.relation in cycle]
    going = tuple(
        replace(table, status=Status.ACTIVE, reason=None, held=False)
        for table in stopped
        if table.status is Status.SUSPENDED and was_stopped_by_limit(engine, table)
    )
    with engine.step(AlterTable(table.relation)):
        engine.catalog.commit(Change(put=going), fence=fence)
    allowed = frozenset(table.relation for table in going)
    state = engine.catalog.state()
    refresh_table(engine, state, table.schema, table.name, None, fence, allowed=allowed)


def reinit(engine: Engine, schema: str, name: str) -> Refresh:
    """Rebuild the table from its inputs, and recapture sources whose logs are damaged."""
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        done = _rebuild(engine, state, {table.relation: "reinitialised"}, lease.fence)
        return done[require_table(engine.catalog.state(), schema, name).relation]


def refresh(engine: Engine, schema: str, name: str, mode: RefreshMode | None = None) -> Refresh:
    """Refresh the table to the newest state of its sources, and rebuild what needs it.

    A cut may find that a column has a wider type, and suspend what reads it: that is rebuilt.
    """
    with engine.writing() as lease:
        try:
            return _refresh(engine, schema, name, mode, lease.fence)
        except UserError as error:
            if error.code != "table-suspended" or not _awaiting(engine, schema, name):
                raise
        return _refresh(engine, schema, name, mode, lease.fence)


def _refresh(
    engine: Engine, schema: str, name: str, mode: RefreshMode | None, fence: int
) -> Refresh:
    done: dict[str, Refresh] = {}
    for stale in _awaiting(engine, schema, name):
        # The rebuild of an earlier table may have rebuilt this one as a reader of it.
        if stale in _awaiting(engine, schema, name):
            reason = FIRST if stale.is_uninitialized else stale.reason
            assert reason is not None
            state = engine.catalog.state()
            done |= _rebuild_or_suspend(engine, state, {stale.relation: reason}, fence)
    state = engine.catalog.state()
    table = require_table(state, schema, name)
    if table.relation in done:
        return done[table.relation]
    return _refresh_going(engine, state, table, mode, fence)


def _awaiting(engine: Engine, schema: str, name: str) -> list[StreamTable]:
    """Return the tables to be rebuilt among a table and all that is refreshed with it."""
    state = engine.catalog.state()
    if not state.to_be_rebuilt:
        return []
    table = require_table(state, schema, name)
    needed = together(state, [table], engine.settings(state))
    return [table for table in needed if table in state.to_be_rebuilt]


def _refresh_going(
    engine: Engine, state: State, table: StreamTable, mode: RefreshMode | None, fence: int
) -> Refresh:
    schema, name = table.schema, table.name
    needed = upstream(state.stream_tables, table)
    below = _not_suspended(state, needed)
    if any(table.is_uninitialized for table in below):
        # Filling a table fails if an input is suspended, which is no reason to suspend the table,
        # too.
        require_active(needed)
    reasons = {table.relation: why_rebuilt(table) for table in below if is_stale(table)}
    if any(table.views for table in below):
        with engine.database.session() as connection:
            reasons |= changed_views(connection, *below)
    if not reasons:
        return refresh_table(engine, state, schema, name, mode, fence)
    done = _rebuild_or_suspend(engine, state, reasons, fence)
    state = engine.catalog.state()
    now = require_table(state, schema, name)
    return done.get(now.relation) or refresh_table(engine, state, schema, name, mode, fence)


def _not_suspended(state: State, tables: Sequence[StreamTable]) -> tuple[StreamTable, ...]:
    """Return the tables that are not suspended; a cycle is if one of its members is."""
    cycle_of = cycles(state.stream_tables)
    still = {table.relation for table in state.stream_tables if table.status is Status.SUSPENDED}
    return tuple(
        table
        for table in tables
        if still.isdisjoint(cycle_of.get(table.relation, frozenset({table.relation})))
    )


def _fits_inputs(engine: Engine, state: State, table: StreamTable) -> bool:
    with engine.database.session() as connection:
        return fits_inputs(NameResolver.of(engine, connection, state), state, table, {})


def _rebuild(
    engine: Engine, state: State, reasons: dict[str, str], fence: int
) -> dict[str, Refresh]:
    """Rebuild tables, each for its reason, with stale ones that their readers need."""
    reasons = _with_stale(state, reasons)
    specs = [
        TableSpec(reasons[table.relation], old=table)
        for table in state.stream_tables
        if table.relation in reasons
    ]
    done = build(engine, plan(engine, state, specs, damaged_sources(engine, state)), fence)
    reset_shrunk_sources(engine, state, fence)
    return done


def _with_stale(state: State, reasons: dict[str, str]) -> dict[str, str]:
    """Add the stale tables without which readers of these could not be rebuilt.

    Both sides of a diamond may be stale: the table in which they meet needs both.
    """
    all_reasons = dict(reasons)
    while True:
        above = downstream(state.stream_tables, *all_reasons)
        readers = [table for table in above if not table.is_uninitialized]
        needed = (table for reader in readers for table in upstream(state.stream_tables, reader))
        stale = [table for table in _not_suspended(state, tuple(needed)) if is_stale(table)]
        brought = {reader.relation for reader in readers}
        covered = brought | all_reasons.keys()
        more = {
            table.relation: why_rebuilt(table) for table in stale if table.relation not in covered
        }
        if not more:
            return all_reasons
        all_reasons |= more


def _rebuild_or_suspend(
    engine: Engine, state: State, reasons: dict[str, str], fence: int
) -> dict[str, Refresh]:
    """Rebuild tables; suspend them, with the reason, on an error that a person has to fix."""
    try:
        return _rebuild(engine, state, reasons, fence)
    except UserError as error:
        for table in engine.catalog.state().stream_tables:
            if table.relation in reasons:
                reason = f"{reasons[table.relation]}: {error.message}"
                change(engine, table, table.suspended(reason), fence)
        return {}
