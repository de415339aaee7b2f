"""Waiting until a stream table shows all that was committed before: reading one's own writes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from headrace.boundary.arguments import seconds
from headrace.capture.snapshot import contains
from headrace.catalog import State
from headrace.catalog.records import Source, Status, StreamTable
from headrace.commands.client import FIRST_PAUSE, LONGEST_PAUSE, submit
from headrace.commands.commands import RefreshTable
from headrace.engine import Engine
from headrace.errors import Transient
from headrace.graph import upstream
from headrace.ingest.ingest import has_pending_changes
from headrace.refresh.refresh import require_active, require_table
from headrace.refresh.scope import together
from headrace.schedule.goal import Goal
from headrace.schedule.state import schedules_of
from headrace.schedule.tiers import Tier, tier_option
from headrace.settings import Settings
from headrace.source.faults import translated

# The tiers whose tables are refreshed when they are due, read or not.
FOLLOWING = frozenset({Tier.HOT.value, Tier.WARM.value})


def wait_fresh(engine: Engine, schema: str, name: str, timeout: float) -> int:
    """Wait until the published table has all that was committed before the call; return its epoch.

    While a daemon serves, its schedules bring that about; raise `wait-timeout` if they do not in
    time. If they never would, or if no daemon serves, the table is refreshed. Raise
    `table-suspended` if the table is suspended, or a table or source that it needs.
    """
    deadline = time.monotonic() + seconds("timeout", timeout)
    state = engine.catalog.state()
    sources = _sources(state, require_table(state, schema, name))
    numbers = sorted({source.database for source in sources})
    committed = {number: _snapshot(engine, state, number) for number in numbers}
    goal: Goal | None = None
    pause = FIRST_PAUSE
    while True:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        goal = goal or _goal(engine, state, table, committed)
        lacking = (table,) if goal is None else goal.lacking(state, table)
        if not lacking:
            return table.epoch
        settings = engine.settings(state)
        require_active(together(state, [table], settings))
        if engine.catalog.serving() is None or _left_alone(state, settings, lacking):
            submit(engine, RefreshTable(schema, name))
            return require_table(engine.catalog.state(), schema, name).epoch
        if time.monotonic() >= deadline:
            raise _too_late(lacking, timeout)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _sources(state: State, table: StreamTable) -> tuple[Source, ...]:
    """Return the sources below a table."""
    read = {name for reader in upstream(state.stream_tables, table) for name in reader.inputs}
    return tuple(source for source in state.sources if source.relation in read)


def _goal(
    engine: Engine, state: State, table: StreamTable, committed: Mapping[int, str]
) -> Goal | None:
    """Return the goal: all that the newest cuts have; None if they lack a committed change."""
    sources = _sources(state, table)
    for number in {source.database for source in sources}:
        cut = state.database(number).snapshot
        database_sources = [source for source in sources if source.database == number]
        if cut is None:
            return None
        # The sources of a database that is read only since the call were copied since, too.
        is_contained = number not in committed or contains(cut, committed[number])
        if not is_contained and _has_pending_changes(engine, state, number, database_sources, cut):
            return None
    return Goal({source.relation: state.relation(source.relation).pin.epoch for source in sources})


def _has_pending_changes(
    engine: Engine, state: State, number: int, sources: Iterable[Source], cut: str
) -> bool:
    """Return whether a source may have changed since the cut, or the cut is no longer the newest.

    Without changes no cut is taken. An empty buffer means no changes only if no cut has emptied it
    meanwhile.
    """
    new = has_pending_changes(engine, state, number, sources)
    return new or engine.catalog.state().database(number).snapshot != cut


def _left_alone(state: State, settings: Settings, tables: Iterable[StreamTable]) -> bool:
    """Return whether one of the tables is not refreshed by its schedule alone."""
    schedules = schedules_of(state, settings.time_zone)
    return any(
        not schedules[table.relation] or tier_option(table, settings) not in FOLLOWING
        for table in tables
    )


def _snapshot(engine: Engine, state: State, number: int) -> str:
    database = engine.source_database(state.database(number))
    with database.session() as connection, translated():
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    return str(row[0])


def _too_late(lacking: tuple[StreamTable, ...], timeout: float) -> Transient:
    behind = ", ".join(f"{table.schema}.{table.name}" for table in lacking)
    failed = [table for table in lacking if table.status is Status.ERROR]
    reasons = "".join(f" {table.schema}.{table.name} failed: {table.reason}." for table in failed)
    return Transient(
        "wait-timeout",
        f"{lacking[-1].schema}.{lacking[-1].name} did not become fresh in {timeout:g} s",
        detail=f"Behind are {behind}.{reasons}",
        hint="Wait longer, or `refresh` it now.",
    )
