"""Stream tables that stop, go on, or are made anew as they are."""

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
from headrace.graph.cycles import cycles
from headrace.lifecycle.build import build
from headrace.lifecycle.capture_modes import declare_anew
from headrace.lifecycle.change import change
from headrace.lifecycle.drift import changed_views, is_whole
from headrace.lifecycle.empty import NOT_FILLED
from headrace.lifecycle.name_resolver import NameResolver
from headrace.lifecycle.planned_table import FIRST
from headrace.lifecycle.planning import plan
from headrace.lifecycle.sources import damaged_sources
from headrace.lifecycle.table_spec import TableSpec, why_rebuilt
from headrace.refresh.change_limit import was_blown
from headrace.refresh.refresh import refresh_table, require_active, require_table
from headrace.refresh.together import together

BY_HAND = "suspended by hand"


class ResumeMode(StrEnum):
    """How a table goes on that was suspended by `max_change_rows`."""

    APPLY = "apply"
    REBUILD = "rebuild"


def suspend(engine: Engine, schema: str, name: str) -> StreamTable:
    """Let the table stand still until it is resumed; what it serves stays readable."""
    with engine.writing() as lease:
        table = require_table(engine.catalog.state(), schema, name)
        stopped = table.status is Status.SUSPENDED
        held = replace(
            table,
            status=Status.SUSPENDED,
            reason=table.reason if stopped else BY_HAND,
            held=True,
        )
        change(engine, table, held, lease.fence)
        return held


def resume_mode(mode: str | None) -> ResumeMode | None:
    """How a table shall go on, as users say it; None is whatever it takes."""
    if mode is None:
        return None
    try:
        return ResumeMode(mode.lower())
    except ValueError:
        raise UserError(
            "invalid-option", f"a stream table is resumed with apply or rebuild, not {mode!r}"
        ) from None


def resume(engine: Engine, schema: str, name: str, mode: ResumeMode | None = None) -> StreamTable:
    """Let the table go on; unless it was merely suspended, it is rebuilt.

    One without rows that was suspended by hand waits for its first refresh again. APPLY takes the
    change in that was larger than `max_change_rows`.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        if table.status is Status.ACTIVE:
            return table
        if mode is ResumeMode.APPLY:
            _apply(engine, state, table, lease.fence)
        elif mode is ResumeMode.REBUILD:
            _renew(engine, state, {table.relation: "resumed"}, lease.fence)
        elif table.held and table.is_uninitialized:
            waiting = replace(table, status=Status.INITIALIZING, reason=NOT_FILLED, held=False)
            change(engine, table, waiting, lease.fence)
        elif table.held and not is_stale(table) and _is_whole(engine, state, table):
            going = replace(
                table, status=Status.ACTIVE, reason=None, held=False, awaits_rebuild=False
            )
            change(engine, table, going, lease.fence)
        else:
            if table.held and table.reason != BY_HAND:
                # If the rebuild fails, the table is as it was before it was suspended by hand.
                change(engine, table, replace(table, held=False), lease.fence)
                state = engine.catalog.state()
            _renew(engine, state, {table.relation: "resumed"}, lease.fence)
        return require_table(engine.catalog.state(), schema, name)


def _apply(engine: Engine, state: State, table: StreamTable, fence: int) -> None:
    """Refresh a table that the fuse has stopped, with all that has changed, whatever it is.

    Tables of a cycle were stopped together.
    """
    if not was_blown(engine, table) or is_stale(table) or not _is_whole(engine, state, table):
        raise UserError(
            "invalid-option",
            f"{table.schema}.{table.name} was not suspended by max_change_rows",
            detail=table.reason,
            hint="Resume it without apply.",
        )
    cycle = cycles(state.stream_tables).get(table.relation, frozenset({table.relation}))
    stopped = [one for one in state.stream_tables if one.relation in cycle]
    going = tuple(
        replace(one, status=Status.ACTIVE, reason=None, held=False)
        for one in stopped
        if one.status is Status.SUSPENDED and was_blown(engine, one)
    )
    with engine.step(AlterTable(table.relation)):
        engine.catalog.commit(Change(put=going), fence=fence)
    allowed = frozenset(one.relation for one in going)
    state = engine.catalog.state()
    refresh_table(engine, state, table.schema, table.name, None, fence, allowed=allowed)


def reinit(engine: Engine, schema: str, name: str) -> Refresh:
    """Make the table anew from its inputs, and capture sources anew whose logs are damaged."""
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        done = _renew(engine, state, {table.relation: "reinitialised"}, lease.fence)
        return done[require_table(engine.catalog.state(), schema, name).relation]


def refresh(engine: Engine, schema: str, name: str, asked: RefreshMode | None = None) -> Refresh:
    """Bring the table to the newest state of its sources; what has to be made anew is.

    A cut may find that a column has a wider type, and suspend what reads it: that is rebuilt.
    """
    with engine.writing() as lease:
        try:
            return _refresh(engine, schema, name, asked, lease.fence)
        except UserError as error:
            if error.code != "table-suspended" or not _awaiting(engine, schema, name):
                raise
        return _refresh(engine, schema, name, asked, lease.fence)


def _refresh(
    engine: Engine, schema: str, name: str, asked: RefreshMode | None, fence: int
) -> Refresh:
    done: dict[str, Refresh] = {}
    for one in _awaiting(engine, schema, name):
        # Rebuilding one of them may have rebuilt others that read it.
        if one in _awaiting(engine, schema, name):
            reason = FIRST if one.is_uninitialized else one.reason
            assert reason is not None
            state = engine.catalog.state()
            done |= _renew_or_suspend(engine, state, {one.relation: reason}, fence)
    state = engine.catalog.state()
    table = require_table(state, schema, name)
    if table.relation in done:
        return done[table.relation]
    return _refresh_going(engine, state, table, asked, fence)


def _awaiting(engine: Engine, schema: str, name: str) -> list[StreamTable]:
    """What is to be rebuilt of a table and all that is refreshed with it."""
    state = engine.catalog.state()
    if not state.to_be_rebuilt:
        return []
    table = require_table(state, schema, name)
    needed = together(state, [table], engine.settings(state))
    return [one for one in needed if one in state.to_be_rebuilt]


def _refresh_going(
    engine: Engine, state: State, table: StreamTable, asked: RefreshMode | None, fence: int
) -> Refresh:
    schema, name = table.schema, table.name
    needed = upstream(state.stream_tables, table)
    below = _going(state, needed)
    if any(one.is_uninitialized for one in below):
        # Filling it would fail over what is suspended, and is no reason to suspend it, too.
        require_active(needed)
    reasons = {one.relation: why_rebuilt(one) for one in below if is_stale(one)}
    if any(one.views for one in below):
        with engine.database.session() as connection:
            reasons |= changed_views(connection, *below)
    if not reasons:
        return refresh_table(engine, state, schema, name, asked, fence)
    done = _renew_or_suspend(engine, state, reasons, fence)
    state = engine.catalog.state()
    now = require_table(state, schema, name)
    return done.get(now.relation) or refresh_table(engine, state, schema, name, asked, fence)


def _going(state: State, tables: Sequence[StreamTable]) -> tuple[StreamTable, ...]:
    """Those that do not stand still; a cycle stands still if one of its tables does."""
    known = cycles(state.stream_tables)
    still = {one.relation for one in state.stream_tables if one.status is Status.SUSPENDED}
    return tuple(
        one
        for one in tables
        if still.isdisjoint(known.get(one.relation, frozenset({one.relation})))
    )


def _is_whole(engine: Engine, state: State, table: StreamTable) -> bool:
    with engine.database.session() as connection:
        return is_whole(NameResolver.of(engine, connection, state), state, table, {})


def _renew(engine: Engine, state: State, reasons: dict[str, str], fence: int) -> dict[str, Refresh]:
    """Make tables anew, each for its reason, with stale ones that their readers need."""
    reasons = _with_stale(state, reasons)
    wishes = [
        TableSpec(reasons[table.relation], old=table)
        for table in state.stream_tables
        if table.relation in reasons
    ]
    done = build(engine, plan(engine, state, wishes, damaged_sources(engine, state)), fence)
    declare_anew(engine, state, fence)
    return done


def _with_stale(state: State, reasons: dict[str, str]) -> dict[str, str]:
    """Add the stale tables without which readers of the tables could not be rebuilt with them.

    Both sides of a diamond may be stale: the table in which they meet needs both.
    """
    found = dict(reasons)
    while True:
        above = downstream(state.stream_tables, *found)
        readers = [one for one in above if not one.is_uninitialized]
        needed = (one for reader in readers for one in upstream(state.stream_tables, reader))
        stale = [one for one in _going(state, tuple(needed)) if is_stale(one)]
        brought = {reader.relation for reader in readers}
        known = brought | found.keys()
        more = {one.relation: why_rebuilt(one) for one in stale if one.relation not in known}
        if not more:
            return found
        found |= more


def _renew_or_suspend(
    engine: Engine, state: State, reasons: dict[str, str], fence: int
) -> dict[str, Refresh]:
    """Make tables anew; what a person has to mend suspends them, with the reason."""
    try:
        return _renew(engine, state, reasons, fence)
    except UserError as error:
        for one in engine.catalog.state().stream_tables:
            if one.relation in reasons:
                reason = f"{reasons[one.relation]}: {error.message}"
                change(engine, one, one.suspended(reason), fence)
        return {}
