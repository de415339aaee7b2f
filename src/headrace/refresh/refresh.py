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
from headrace.graph.cycles import Group, cycles, grouped
from headrace.graph.layers import by_stratum
from headrace.ingest.ingest import ingest
from headrace.publish.publish import Advanced, publish
from headrace.refresh.clock import Clock
from headrace.refresh.compute import compute
from headrace.refresh.plan import Decision, decide, plan_cycle, plan_refresh
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
    strata_skipped: int = 0

    def record(self, jobs: int = 0, error: HeadraceError | None = None) -> Refresh:
        """The line for the history."""
        rounds = [run.iterations for run in self.clock.stages if run.iterations is not None]
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
            iterations=max(rounds, default=None),
            strata_skipped=self.strata_skipped,
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
    order = upstream(state.stream_tables, table)
    require_active(order)
    own = cycles(state.stream_tables).get(table.relation, frozenset({table.relation}))
    group = tuple(one for one in order if one.relation in own)
    below = tuple(one for one in order if one.relation not in own)
    advanced, state, skipped = advance_all(engine, state, below, fence)
    changed = changed_inputs(group, state)
    decision = decide(group, asked, changed)
    epoch = state.database(HOME).epoch
    attempts = tuple(
        Attempt(one, epoch, decision, clock, started_at, skipped if one is table else 0)
        for one in group
    )
    if decision.mode != "SKIPPED":
        advanced += advance_or_remember(engine, attempts, changed, state, fence)
    if advanced:
        with clock.phase("publish"):
            as_of = state.database(HOME).cut_at
            lines = {one.table: one for one in publish(engine, advanced, as_of=as_of, fence=fence)}
        written = {r.id for one in advanced for r in one.relations}
        compact(engine, sorted(written | read), fence)
        if decision.mode != "SKIPPED":
            # The history is written by publish itself, so only the answer can tell its time.
            return replace(lines[table.relation], phases=dict(clock.phases))
    (attempt,) = (one for one in attempts if one.table.relation == table.relation)
    return replace(attempt.record(), epoch=table.epoch)


def advance_all(
    engine: Engine, state: State, tables: tuple[StreamTable, ...], fence: int
) -> tuple[tuple[Advanced, ...], State, int]:
    """Bring tables, each after those it reads, to the newest epoch: what changed, and the state.

    They are looked at stratum by stratum. One into which no change comes is skipped as a whole;
    the last number says how many were.
    """
    advanced: tuple[Advanced, ...] = ()
    skipped = 0
    skipping = engine.settings(state).enable_stratum_skip
    for stratum in by_stratum(tables):
        if skipping and not _comes_in(stratum, state):
            skipped += 1
            continue
        for group in grouped(stratum, state.stream_tables):
            changed = changed_inputs(group, state)
            decision = decide(group, None, changed)
            if decision.mode == "SKIPPED":
                continue
            epoch, clock = state.database(HOME).epoch, Clock()
            attempts = tuple(Attempt(one, epoch, decision, clock) for one in group)
            done = advance_or_remember(engine, attempts, changed, state, fence)
            state = state.with_relations(r for one in done for r in one.relations)
            advanced += done
    return advanced, state, skipped


def _comes_in(stratum: Group, state: State) -> bool:
    """Whether something has changed that a table of the stratum has not taken in."""
    return any(table.epoch == 0 or changed_inputs((table,), state) for table in stratum)


def advance_or_remember(
    engine: Engine,
    attempts: tuple[Attempt, ...],
    changed: frozenset[str],
    state: State,
    fence: int,
) -> tuple[Advanced, ...]:
    """`advance` for tables that exist; a failure is kept in the history before it is raised."""
    try:
        definitions = tuple(define(one.table, state) for one in attempts)
        return advance(engine, attempts, definitions, changed, state)
    except HeadraceError as error:
        _remember(engine, attempts, error, fence)
        raise


def advance(
    engine: Engine,
    attempts: tuple[Attempt, ...],
    definitions: tuple[Definition, ...],
    changed: frozenset[str],
    state: State,
) -> tuple[Advanced, ...]:
    """Compute every stage of a table, or of all tables of a cycle, which are advanced as one.

    `state` has the relations that the stages write and read. The attempts of a cycle share their
    decision and their clock.
    """
    tables = tuple(one.table for one in attempts)
    first = attempts[0]
    clock, epoch = first.clock, first.epoch
    jobs = engine.runner.jobs
    follow = engine.settings(state).stratified_dred
    with clock.phase("plan"):
        if definitions[0].final.cycle:
            stored = all(table.epoch > 0 for table in tables)
            steps = plan_cycle(definitions, first.decision, changed, stored=stored, follow=follow)
        else:
            steps = plan_refresh(tables[0], definitions[0], first.decision, changed, follow=follow)
    own = {
        stage.relation: state.relation(stage.relation)
        for definition in definitions
        for stage in definition.stages
    }
    written = compute(engine, tables, steps, state, own, epoch, clock)
    after = state.with_relations(written.values())
    limit = engine.settings(state).collect_rows
    changes = []
    for table, definition in zip(tables, definitions, strict=True):
        with clock.phase("read"):
            final = written[definition.final.relation]
            reading = Reading(engine.store, after, {final.id: table.epoch}, epoch, limit)
            changes.append(visible_change(engine, reading, final))
    jobs = engine.runner.jobs - jobs
    return tuple(
        Advanced(
            attempt.table,
            tuple(written[stage.relation] for stage in definition.stages),
            change,
            attempt.record(jobs),
        )
        for attempt, definition, change in zip(attempts, definitions, changes, strict=True)
    )


def changed_inputs(group: Group, state: State) -> frozenset[str]:
    """The inputs with rows beyond what the tables have taken in, other than the tables' own."""
    own = frozenset(table.relation for table in group) if len(group) > 1 else frozenset()
    changed: set[str] = set()
    for table in group:
        if is_stale(table):
            name = f"{table.schema}.{table.name}"
            raise InternalError("invariant", f"stream table {name} has to be made anew first")
        changed |= {
            name
            for name in table.inputs
            if name not in own
            and name != table.relation
            and state.relation(name).pin.epoch > taken_in(table, name)
        }
    return frozenset(changed)


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


def _remember(
    engine: Engine, attempts: tuple[Attempt, ...], error: HeadraceError, fence: int
) -> None:
    """Keep the failure in the history; one that will not pass by itself also marks the tables."""
    passing = isinstance(error, Transient | Unavailable)
    marked = tuple(
        replace(one.table, status=Status.ERROR, reason=error.message) for one in attempts
    )
    refreshes = tuple(one.record(error=error) for one in attempts)
    change = Change(put=() if passing else marked, refreshes=refreshes)
    try:
        with engine.step(RecordFailure(attempts[0].table.relation)):
            engine.catalog.commit(change, fence=fence)
    except HeadraceError as second:
        error.add_note(f"and the history could not be written: {second.message}")
