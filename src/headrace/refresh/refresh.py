"""Refresh a table with all that it reads, or a group on schedule; prune the history afterwards."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from headrace.catalog import State
from headrace.catalog.records import Refresh, RefreshMode, Status, StreamTable
from headrace.engine import Engine
from headrace.errors import HeadraceError, UserError
from headrace.graph import upstream
from headrace.graph.dependencies import ordered
from headrace.ingest.ingest import ingest
from headrace.refresh.run import RefreshRun, RefreshTarget
from headrace.refresh.scope import together
from headrace.relations.compaction import compact


def refresh_table(
    engine: Engine,
    state: State,
    schema: str,
    name: str,
    mode: RefreshMode | None,
    fence: int,
    *,
    allowed: frozenset[str] = frozenset(),
) -> Refresh:
    """Refresh a stream table to the newest state of its sources; return the line, or SKIPPED.

    Everything that it reads is refreshed to the same epoch, and whole groups of that; all of it is
    published as one. Tables that are `allowed` may take in more than `max_change_rows`.
    """
    table = require_table(state, schema, name)
    target = RefreshTarget(table.relation, mode, allowed=allowed)
    read = {i for table in upstream(state.stream_tables, table) for i in table.inputs}
    with target.clock.phase("cut"):
        state = ingest(engine, state, fence, needed=frozenset(read), retry=frozenset(read))
    table = require_table(state, schema, name)
    tables = together(state, [table], engine.settings(state))
    require_active(tables)
    run = RefreshRun(engine, state, tables, fence, target)
    run.run()
    attempt = run.attempts[table.relation]
    with target.clock.phase("publish"):
        lines = run.finish()
    if lines or run.unread:
        compact(engine, sorted({*run.relations, *read}), fence)
        prune_history(engine, state, [table.relation for table in tables])
    if table.relation in lines:
        # The history is written by publish itself, so only the result can have its time.
        return replace(lines[table.relation], phases=dict(target.clock.phases))
    return replace(attempt.record(), epoch=table.epoch)


def refresh_group(
    engine: Engine, state: State, relations: Iterable[str], fence: int
) -> dict[str, Refresh]:
    """Refresh the tables of a group to what is published of all else, by relation.

    For use beside other refreshes: none of them has a table of this group. Where it fails, its
    logs are rolled back to their pins.
    """
    names = frozenset(relations)
    tables = ordered(table for table in state.stream_tables if table.relation in names)
    run = RefreshRun(engine, state, tables, fence)
    try:
        run.run()
        lines = run.finish()
    except BaseException:
        engine.roll_back(names, fence)
        raise
    if lines:
        compact(engine, sorted(run.relations), fence)
        prune_history(engine, state, [table.relation for table in state.stream_tables])
    return lines


def require_table(state: State, schema: str, name: str) -> StreamTable:
    """Return the stream table of that name, or raise UserError listing the tables."""
    table = state.stream_table(schema, name)
    if table is None:
        names = ", ".join(f"{t.schema}.{t.name}" for t in state.stream_tables) or "none"
        raise UserError(
            "unknown-stream-table",
            f"stream table {schema}.{name} does not exist",
            hint=f"The stream tables are: {names}.",
        )
    return table


def require_active(tables: tuple[StreamTable, ...]) -> None:
    """Refuse to refresh over a suspended table; the first one is the root of it."""
    for table in tables:
        if table.status is Status.SUSPENDED:
            raise UserError(
                "table-suspended",
                f"stream table {table.schema}.{table.name} is suspended",
                detail=table.reason,
                hint="Fix the cause, then resume, reinit, alter or drop the stream table.",
            )


# Seconds between two prunings by one process.
INTERVAL = 600.0

logger = logging.getLogger(__name__)


@dataclass
class LastPruning:
    """When this process last pruned the history, by its monotonic clock."""

    at: float | None = None


def prune_history(engine: Engine, state: State, tables: Iterable[str]) -> None:
    """Remove old lines of these tables, unless that was done a moment ago.

    The refreshes are published already, so a failure is logged and not raised.
    """
    now, last = time.monotonic(), engine.part(LastPruning)
    if last.at is not None and now < last.at + INTERVAL:
        return
    last.at = now
    settings = engine.settings(state)
    before = datetime.now(UTC) - timedelta(seconds=settings.refresh_history_age)
    try:
        engine.catalog.prune_history(tables, before, settings.refresh_history_lines)
    except HeadraceError as error:
        extra = {"code": error.code, "error": error.message}
        logger.warning("could not prune the refresh history", extra=extra)
