"""Stream tables that stop, go on, or are made anew as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.catalog import State
from headrace.catalog.records import Refresh, RefreshMode, Status, StreamTable, is_stale
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.graph import downstream, upstream
from headrace.graph.cycles import cycles
from headrace.lifecycle.build import build
from headrace.lifecycle.change import change
from headrace.lifecycle.planning import plan
from headrace.lifecycle.reach import Reach
from headrace.lifecycle.sources import damaged_sources
from headrace.lifecycle.whole import changed_views, is_whole
from headrace.lifecycle.wish import READER, Wish
from headrace.refresh.refresh import refresh_table, require_table
from headrace.refresh.together import together

BY_HAND = "suspended by hand"


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


def resume(engine: Engine, schema: str, name: str) -> StreamTable:
    """Let the table go on; unless it merely stood still, it is made anew."""
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        if table.status is Status.ACTIVE:
            return table
        if table.held and not is_stale(table) and _is_whole(engine, state, table):
            going = replace(
                table, status=Status.ACTIVE, reason=None, held=False, awaits_rebuild=False
            )
            change(engine, table, going, lease.fence)
        else:
            _renew(engine, state, {table.relation: "resumed"}, lease.fence)
        return require_table(engine.catalog.state(), schema, name)


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
            assert one.reason is not None
            state = engine.catalog.state()
            done |= _renew_or_suspend(engine, state, {one.relation: one.reason}, fence)
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
    below = _going(state, upstream(state.stream_tables, table))
    reasons = {one.relation: READER for one in below if is_stale(one)}
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
        return is_whole(Reach.of(engine, connection, state), state, table, {})


def _renew(engine: Engine, state: State, reasons: dict[str, str], fence: int) -> dict[str, Refresh]:
    """Make tables anew, each for its reason, with stale ones that their readers need."""
    reasons = _with_stale(state, reasons)
    wishes = [
        Wish(reasons[table.relation], old=table)
        for table in state.stream_tables
        if table.relation in reasons
    ]
    return build(engine, plan(engine, state, wishes, damaged_sources(engine, state)), fence)


def _with_stale(state: State, reasons: dict[str, str]) -> dict[str, str]:
    """Add the stale tables without which readers of the tables could not be rebuilt with them.

    Both sides of a diamond may be stale: the table in which they meet needs both.
    """
    found = dict(reasons)
    while True:
        readers = downstream(state.stream_tables, *found)
        needed = (one for reader in readers for one in upstream(state.stream_tables, reader))
        stale = [one for one in _going(state, tuple(needed)) if is_stale(one)]
        brought = {reader.relation for reader in readers}
        more = {one.relation: READER for one in stale if one.relation not in brought | found.keys()}
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
