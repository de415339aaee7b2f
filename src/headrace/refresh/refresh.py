"""One refresh of one stream table, from the cut to the served rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from headrace.catalog import Change, State
from headrace.catalog.records import Refresh, RefreshMode, Relation, Status, StreamTable
from headrace.definition import Definition, define
from headrace.engine import HOME, Engine
from headrace.errors import HeadraceError, Transient, Unavailable, UserError
from headrace.ingest.ingest import ingest
from headrace.publish.publish import publish
from headrace.refresh.clock import Clock
from headrace.refresh.compute import compute
from headrace.refresh.plan import Decision, decide, plan_refresh
from headrace.relations.reading import Reading


@dataclass(frozen=True)
class Attempt:
    """One try at a refresh: what is brought where, which way, under which lease."""

    engine: Engine
    table: StreamTable
    state: State
    fence: int
    decision: Decision
    clock: Clock = field(default_factory=Clock)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def epoch(self) -> int:
        """The newest epoch; the table's own if there is nothing to do."""
        if self.decision.mode == "SKIPPED":
            return self.table.epoch
        return self.state.database(HOME).epoch

    def record(self, jobs: int = 0, error: HeadraceError | None = None) -> Refresh:
        """The line for the history."""
        return Refresh(
            self.table.relation,
            self.epoch,
            self.decision.mode,
            self.decision.reason,
            rows_inserted=0,
            rows_deleted=0,
            phases=self.clock.phases,
            spark_jobs=jobs,
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            error=None if error is None else f"{error.code}: {error.message}",
        )


def refresh_table(
    engine: Engine, schema: str, name: str, asked: RefreshMode | None = None
) -> Refresh:
    """Bring a stream table to the newest state of its sources; what was done, or SKIPPED."""
    clock = Clock()
    started_at = datetime.now(UTC)
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        with clock.phase("cut"):
            state = ingest(engine, state, lease.fence, retry=frozenset(table.inputs))
        table = require_table(state, schema, name)
        if table.status is Status.SUSPENDED:
            raise suspended(table)
        changed = changed_inputs(table, state)
        decision = decide(table, asked, changed)
        attempt = Attempt(engine, table, state, lease.fence, decision, clock, started_at)
        if decision.mode == "SKIPPED":
            return attempt.record()
        definition = define(table, state)
        relations = {s.relation: state.relation(s.relation) for s in definition.stages}
        try:
            return advance(attempt, definition, changed, relations)
        except HeadraceError as error:
            _remember(attempt, error)
            raise


def advance(
    attempt: Attempt,
    definition: Definition,
    changed: frozenset[str],
    relations: dict[str, Relation],
) -> Refresh:
    """Compute every stage and publish the table; `relations` are those that the stages write."""
    engine, table, state = attempt.engine, attempt.table, attempt.state
    jobs = engine.runner.jobs
    with attempt.clock.phase("plan"):
        steps = plan_refresh(table, definition, attempt.decision, changed)
    written = compute(engine, table, steps, state, relations, attempt.epoch, attempt.clock)
    with attempt.clock.phase("publish"):
        final = written[definition.final.relation]
        after = replace(state, relations=tuple(written.values()))
        reading = Reading(engine.store, after, {final.id: table.epoch}, attempt.epoch, limit=0)
        return publish(
            engine.catalog,
            table,
            tuple(written.values()),
            reading.change(final),
            attempt.record(engine.runner.jobs - jobs),
            as_of=state.database(HOME).cut_at,
            fence=attempt.fence,
        )


def changed_inputs(table: StreamTable, state: State) -> frozenset[str]:
    """The inputs with rows beyond what the table has taken in."""
    return frozenset(
        name
        for name in table.inputs
        if state.relation(name).pin.epoch > table.frontier.get(name, 0)
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


def suspended(table: StreamTable) -> UserError:
    return UserError(
        "table-suspended",
        f"stream table {table.schema}.{table.name} is suspended",
        detail=table.reason,
        hint="Mend the cause and refresh again, or drop the stream table.",
    )


def _remember(attempt: Attempt, error: HeadraceError) -> None:
    """Keep the failure in the history; one that will not pass by itself also marks the table."""
    passing = isinstance(error, Transient | Unavailable)
    marked = replace(attempt.table, status=Status.ERROR, reason=error.message)
    change = Change(put=() if passing else (marked,), refreshes=(attempt.record(error=error),))
    try:
        attempt.engine.catalog.commit(change, fence=attempt.fence)
    except HeadraceError as second:
        error.add_note(f"and the history could not be written: {second.message}")
