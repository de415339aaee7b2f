"""One refresh: a stream table and all that it reads, from the cut to the served rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from headrace.catalog import Change, State
from headrace.catalog.records import (
    Refresh,
    RefreshMode,
    Status,
    StreamTable,
    is_stale,
    taken_in,
)
from headrace.definition import Definition, define
from headrace.engine import HOME, Engine
from headrace.errors import HeadraceError, InternalError, Transient, Unavailable, UserError
from headrace.graph import upstream
from headrace.ingest.ingest import ingest
from headrace.publish.publish import Advanced, publish
from headrace.refresh.clock import Clock
from headrace.refresh.compute import compute
from headrace.refresh.plan import Decision, decide, plan_refresh
from headrace.relations.compact import compact
from headrace.relations.reading import Reading
from headrace.relations.visible import visible_change
from headrace.steps import RecordFailure


@dataclass(frozen=True)
class Attempt:
    """One try at bringing a table to an epoch: which way, since when, and where the time went."""

    table: StreamTable
    epoch: int
    decision: Decision
    clock: Clock = field(default_factory=Clock)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def record(self, jobs: int = 0, error: HeadraceError | None = None) -> Refresh:
        """The line for the history."""
        return Refresh(
            self.table.relation,
            self.epoch,
            self.decision.mode,
            self.decision.reason,
            rows_inserted=0,
            rows_deleted=0,
            phases=dict(self.clock.phases),
            spark_jobs=jobs,
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            stages=tuple(self.clock.stages),
            error=None if error is None else f"{error.code}: {error.message}",
        )


def refresh_table(
    engine: Engine,
    state: State,
    schema: str,
    name: str,
    asked: RefreshMode | None,
    fence: int,
) -> Refresh:
    """Bring a stream table to the newest state of its sources; what was done, or SKIPPED.

    Everything that it reads comes along to the same epoch, and all of it is published as one.
    """
    clock = Clock()
    started_at = datetime.now(UTC)
    table = require_table(state, schema, name)
    read = {i for one in upstream(state.stream_tables, table) for i in one.inputs}
    with clock.phase("cut"):
        state = ingest(engine, state, fence, retry=frozenset(read))
    table = require_table(state, schema, name)
    *below, _ = upstream(state.stream_tables, table)
    require_active((*below, table))
    advanced, state = advance_all(engine, state, tuple(below), fence)
    changed = changed_inputs(table, state)
    decision = decide(table, asked, changed)
    attempt = Attempt(table, state.database(HOME).epoch, decision, clock, started_at)
    if decision.mode != "SKIPPED":
        advanced += (advance_or_remember(engine, attempt, changed, state, fence),)
    if advanced:
        with clock.phase("publish"):
            as_of = state.database(HOME).cut_at
            *_, last = publish(engine, advanced, as_of=as_of, fence=fence)
        # The history is written by publish itself, so only the answer can tell its time.
        last = replace(last, phases=dict(clock.phases))
        written = {r.id for one in advanced for r in one.relations}
        compact(engine, sorted(written | read), fence)
        if decision.mode != "SKIPPED":
            return last
    return replace(attempt.record(), epoch=table.epoch)


def advance_all(
    engine: Engine, state: State, tables: tuple[StreamTable, ...], fence: int
) -> tuple[tuple[Advanced, ...], State]:
    """Bring tables, each after those it reads, to the newest epoch; what changed, and the state."""
    advanced: tuple[Advanced, ...] = ()
    for table in tables:
        changed = changed_inputs(table, state)
        decision = decide(table, None, changed)
        if decision.mode != "SKIPPED":
            attempt = Attempt(table, state.database(HOME).epoch, decision)
            done = advance_or_remember(engine, attempt, changed, state, fence)
            state = state.with_relations(done.relations)
            advanced += (done,)
    return advanced, state


def advance_or_remember(
    engine: Engine, attempt: Attempt, changed: frozenset[str], state: State, fence: int
) -> Advanced:
    """`advance` for a table that exists; a failure is kept in the history before it is raised."""
    try:
        return advance(engine, attempt, define(attempt.table, state), changed, state)
    except HeadraceError as error:
        _remember(engine, attempt, error, fence)
        raise


def advance(
    engine: Engine,
    attempt: Attempt,
    definition: Definition,
    changed: frozenset[str],
    state: State,
) -> Advanced:
    """Compute every stage of a table; `state` has the relations that the stages write and read."""
    table, clock = attempt.table, attempt.clock
    jobs = engine.runner.jobs
    with clock.phase("plan"):
        steps = plan_refresh(table, definition, attempt.decision, changed)
    own = {stage.relation: state.relation(stage.relation) for stage in definition.stages}
    written = compute(engine, table, steps, state, own, attempt.epoch, clock)
    with clock.phase("read"):
        final = written[definition.final.relation]
        after = state.with_relations(written.values())
        limit = engine.settings(state).collect_rows
        reading = Reading(engine.store, after, {final.id: table.epoch}, attempt.epoch, limit)
        change = visible_change(engine, reading, final)
    record = attempt.record(engine.runner.jobs - jobs)
    return Advanced(table, tuple(written.values()), change, record)


def changed_inputs(table: StreamTable, state: State) -> frozenset[str]:
    """The inputs with rows beyond what the table has taken in."""
    if is_stale(table):
        name = f"{table.schema}.{table.name}"
        raise InternalError("invariant", f"stream table {name} has to be made anew first")
    return frozenset(
        name for name in table.inputs if state.relation(name).pin.epoch > taken_in(table, name)
    )


def require_table(state: State, schema: str, name: str) -> StreamTable:
    """The stream table of that name, or UserError with those that are there."""
    table = state.stream_table(schema, name)
    if table is None:
        known = ", ".join(f"{t.schema}.{t.name}" for t in state.stream_tables) or "none"
        raise UserError(
            "unknown-stream-table",
            f"no stream table is called {schema}.{name}",
            hint=f"There are: {known}.",
        )
    return table


def require_active(tables: tuple[StreamTable, ...]) -> None:
    """Refuse to refresh over a table that stands still; the first one is the root of it."""
    for table in tables:
        if table.status is Status.SUSPENDED:
            raise UserError(
                "table-suspended",
                f"stream table {table.schema}.{table.name} is suspended",
                detail=table.reason,
                hint="Mend the cause, then resume, reinit, alter or drop the stream table.",
            )


def _remember(engine: Engine, attempt: Attempt, error: HeadraceError, fence: int) -> None:
    """Keep the failure in the history; one that will not pass by itself also marks the table."""
    passing = isinstance(error, Transient | Unavailable)
    marked = replace(attempt.table, status=Status.ERROR, reason=error.message)
    change = Change(put=() if passing else (marked,), refreshes=(attempt.record(error=error),))
    try:
        with engine.step(RecordFailure(attempt.table.relation)):
            engine.catalog.commit(change, fence=fence)
    except HeadraceError as second:
        error.add_note(f"and the history could not be written: {second.message}")
