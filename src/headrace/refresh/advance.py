"""Compute a table, or the tables of a cycle as one, up to an epoch; nothing is visible yet."""

from __future__ import annotations

from dataclasses import replace

from headrace.catalog import State
from headrace.catalog.records import is_stale
from headrace.engine import Engine
from headrace.errors import InternalError
from headrace.graph.components import Group
from headrace.ingest.append_only import growing
from headrace.publish.publish import Advanced
from headrace.refresh.attempt import RefreshAttempt
from headrace.refresh.compute import compute
from headrace.refresh.epochs import Times, data_time, frontier, lacks
from headrace.refresh.plan import plan_cycle, plan_refresh
from headrace.relations.definition import Definition, require_compatible
from headrace.relations.input_reader import InputReader
from headrace.relations.visible_change import visible_change


def advance(
    engine: Engine,
    attempts: tuple[RefreshAttempt, ...],
    definitions: tuple[Definition, ...],
    changed: frozenset[str],
    state: State,
    moved: Times,
) -> tuple[Advanced, ...]:
    """Compute every stage of a table, or of all tables of a cycle, which are advanced as one.

    `state` has the relations that the stages write and read; `moved` are those that were advanced
    before in the same refresh. The attempts of a cycle share their decision and their clock.
    """
    for definition in definitions:
        require_compatible(definition, state)
    tables = tuple(attempt.table for attempt in attempts)
    first = attempts[0]
    clock, epoch = first.clock, first.epoch
    jobs = engine.runner.own_jobs
    follow = engine.settings(state).stratified_dred
    with clock.phase("plan"):
        if definitions[0].final.cycle:
            stored = all(table.epoch > 0 for table in tables)
            steps = plan_cycle(
                definitions,
                first.decision,
                changed,
                stored=stored,
                follow=follow,
                growing=growing(state),
            )
        else:
            steps = plan_refresh(
                tables[0],
                definitions[0],
                first.decision,
                changed,
                follow=follow,
                growing=growing(state),
            )
    own = {
        stage.relation: state.relation(stage.relation)
        for definition in definitions
        for stage in definition.stages
    }
    written = compute(engine, tables, steps, state, own, epoch, clock)
    after = state.with_relations(written.values())
    limit = engine.settings(state).collect_rows
    changes = []
    skipping = engine.settings(state).enable_stratum_skip
    for table, definition in zip(tables, definitions, strict=True):
        with clock.phase("read"):
            final = written[definition.final.relation]
            reading = InputReader(engine.store, after, {final.id: table.epoch}, limit)
            change = visible_change(engine, reading, final)
        unseen = skipping and change.is_empty and table.epoch > 0
        shown_epoch = state.relation(final.id).changed_at if unseen else None
        written[final.id] = replace(final, shown_epoch=shown_epoch)
        changes.append(change)
    jobs = engine.runner.own_jobs - jobs
    times = [data_time(state, table, moved) for table in tables]
    as_of = min((time for time in times if time is not None), default=None)
    together = {**moved, **dict.fromkeys((table.relation for table in tables), as_of)}
    return tuple(
        Advanced(
            attempt.table,
            tuple(written[stage.relation] for stage in definition.stages),
            change,
            attempt.record(jobs),
            frontier(state, attempt.table, epoch, together),
            as_of,
        )
        for attempt, definition, change in zip(attempts, definitions, changes, strict=True)
    )


def changed_inputs(group: Group, state: State) -> frozenset[str]:
    """Return the inputs, except the tables' own, with rows that the tables have not taken in."""
    for table in group:
        if is_stale(table):
            name = f"{table.schema}.{table.name}"
            raise InternalError("invariant", f"stream table {name} has to be rebuilt first")
    own = frozenset(table.relation for table in group)
    return frozenset(name for table in group for name in lacks(state, table)) - own
