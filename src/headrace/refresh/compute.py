"""Perform the computing steps: run each stage's query once and append its rows.

A second query runs where the first finds stale groups; both results are one commit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog import State
from headrace.catalog.records import Relation, StageRun, StreamTable
from headrace.delta.differentiate import only_grows
from headrace.delta.fixed_point import NotConverged
from headrace.delta.nets import drop_nets, is_grouped
from headrace.engine import Engine
from headrace.engine.steps import ComputeLoop, ComputeStage, Step
from headrace.errors import contained
from headrace.plan.operators import STALE, Net, Operator
from headrace.refresh.attempt import Clock
from headrace.refresh.loop import run_loop
from headrace.refresh.plan import Decision, names_of, netted, taking_in
from headrace.refresh.term_pruning import remaining
from headrace.relations.access_paths import AccessPaths
from headrace.relations.input_reader import InputReader
from headrace.relations.recursion import endless
from headrace.relations.reduce import empty_scans, reduced
from headrace.relations.rows import in_ranges, stored_schema, with_epoch
from headrace.render import PlanInput, render
from headrace.spark.profiles import Profile
from headrace.spark.run import Input, TooLarge
from headrace.store import WEIGHT, Pin, net

# A delta query over at most so many rows runs in a single task, by the text that Spark has
# generated code for.
MOST_IN_ONE_TASK = 3_000_000
# Of these, so many may come from files, which several tasks would read faster.
MOST_FROM_FILES = 1_000_000


def compute(
    engine: Engine,
    tables: tuple[StreamTable, ...],
    steps: tuple[Step, ...],
    state: State,
    relations: Mapping[str, Relation],
    epoch: int,
    clock: Clock,
) -> dict[str, Relation]:
    """Run every stage, append its rows at `epoch`, and return the relations with their new pins.

    `tables` is one, or all of a cycle; `relations` are those that their stages write. Nothing
    counts before it is published.
    """
    written = dict(relations)
    settings = engine.settings(state)
    frontier = dict.fromkeys(written, tables[0].epoch)
    for table in tables:
        frontier |= {name: e for name, e in table.frontier.items() if name not in written}
    for step in steps:
        if not isinstance(step, ComputeStage | ComputeLoop):
            continue
        current = state.with_relations(written.values())
        reading = InputReader(engine.store, current, frontier, settings.collect_rows)
        started = time.perf_counter()
        paths = AccessPaths(engine, reading, settings.access_path)
        iterations = None
        reason = step.reason
        pins: dict[str, Pin] = {}
        with engine.step(step), contained(f"compute {_named(step, tables)}"):
            if isinstance(step, ComputeStage):
                relation = written[step.stage.relation]
                computed = _compute_stage(paths, step, relation, epoch, clock)
                if computed is not None:
                    pins, reason = {relation.id: computed.pin}, computed.reason
            else:
                cycle = step.stages[0].cycle
                most = settings.max_fixpoint_iterations if cycle else settings.max_recursion_levels
                try:
                    done = run_loop(engine, step, reading, most, clock)
                except NotConverged as error:
                    raise endless(error, tables, cycle=cycle) from error
                if done is not None:
                    pins = _append(engine, done.rows, written, epoch, clock)
                    iterations = done.iterations
                    paths.read.extend(done.inputs)
        seconds = time.perf_counter() - started
        for number, (name, pin) in enumerate(pins.items()):
            relation = written[name]
            # What a loop read, and its time, are recorded with its first relation.
            first = number == 0
            written[name] = replace(relation, pin=pin)
            added = engine.store.files(name, pin, relation.pin.epoch, pin.epoch)
            clock.stages.append(
                StageRun(
                    name,
                    step.mode,
                    reason,
                    paths.rows_read if first else 0,
                    sum(file.rows for file in added),
                    seconds if first else 0.0,
                    iterations,
                    tuple(paths.taken),
                )
            )
    return written


def _named(step: ComputeStage | ComputeLoop, tables: tuple[StreamTable, ...]) -> str:
    """Return what a step computes, for messages: its stages, and the tables that they are of."""
    stages = (step.stage,) if isinstance(step, ComputeStage) else step.stages
    names = ", ".join(f"{table.schema}.{table.name}" for table in tables)
    return f"{names}, stage {', '.join(stage.relation for stage in stages)}"


def _append(
    engine: Engine,
    rows: Mapping[str, pa.Table],
    relations: Mapping[str, Relation],
    epoch: int,
    clock: Clock,
) -> dict[str, Pin]:
    """Append the rows that a loop found to its relations, and return their pins."""
    pins: dict[str, Pin] = {}
    with clock.phase("commit"):
        for name, appended in rows.items():
            pin = relations[name].pin
            if appended.num_rows:
                pin = engine.store.append(name, pin, epoch, appended)
            pins[name] = pin
    return pins


@dataclass(frozen=True)
class Computed:
    """The pin after a stage's rows were appended, and the strategy by which they were computed."""

    pin: Pin
    reason: str


def _compute_stage(
    paths: AccessPaths, step: ComputeStage, relation: Relation, epoch: int, clock: Clock
) -> Computed | None:
    """Append the stage's rows; None if nothing was to be done."""
    engine, reading = paths.engine, paths.reading
    with clock.phase("read"):
        inputs = [reading.input(plan_input) for plan_input in step.inputs]
    if step.mode == "DIFFERENTIAL":
        watched, moved = _moved(step, inputs)
        if not moved:
            return None
        grows = _grows(reading, step, inputs, moved)
        if moved != watched or grows != step.grows:
            # Changes in columns that the stage does not read are left out of the query.
            with clock.phase("plan"):
                decision = Decision(step.mode, step.reason)
                step = taking_in(step.stage, decision, moved, grows=grows)
            with clock.phase("read"):
                inputs = [reading.input(plan_input) for plan_input in step.inputs]
    paths.start(step.inputs)
    names = names_of(step.stage, step.plan)
    large = frozenset(
        plan_input.relation
        for plan_input, input_ in zip(step.inputs, inputs, strict=True)
        if plan_input.version == "change" and input_.rows is None
    )
    if large and step.touched is not None:
        return _compute_stage(paths, step.touched, relation, epoch, clock)
    if not large and step.reduction is not None:
        with clock.phase("look up"):
            lookup = reduced(paths, step.reduction, step.inputs, inputs)
            inputs = lookup.inputs
            empty = empty_scans(step.plan, step.reduction, step.inputs, lookup)
            left = remaining(step, empty)
            if left is None:
                return Computed(relation.pin, step.reason)
            step = left
            names_read = {plan_input.name for plan_input in step.inputs}
            inputs = [input_ for input_ in inputs if input_.name in names_read]
    plan = netted(step.plan, large) if large else _unnetted(reading, step, inputs)
    tiny = not large and _in_one_task(reading, step, inputs)
    if tiny:
        with clock.phase("read"):
            inputs = list(map(reading.in_memory, step.inputs, inputs))
    as_planned = tiny == (step.mode == "DIFFERENTIAL") and plan is step.plan
    text = step.sql if as_planned else render(plan, names, one_partition=tiny)
    profile: Profile = "tiny" if tiny else "wide"
    with clock.phase("compute"):
        rows = engine.runner.collect(text, inputs, profile=profile, limit=reading.limit)
        if step.stale is not None and isinstance(rows, pa.Table):
            rows = _settled(paths, step.stale, rows, relation)
    if isinstance(rows, TooLarge):
        if step.touched is not None:
            return _compute_stage(paths, step.touched, relation, epoch, clock)
        folder = engine.store.new_folder(relation.id, epoch)
        arrangement = engine.store.arrangement(relation.id, relation.pin)
        with clock.phase("compute"):
            text = with_epoch(render(plan if is_grouped(plan) else Net(plan), names), epoch)
            engine.runner.write(in_ranges(text, arrangement), inputs, folder)
        with clock.phase("commit"):
            pin = engine.store.register(relation.id, relation.pin, epoch, folder)
            return Computed(pin, step.reason)
    with clock.phase("commit"):
        rows = net(rows.cast(stored_schema(relation)))
        pin = relation.pin
        if rows.num_rows:
            pin = engine.store.append(relation.id, pin, epoch, rows)
        return Computed(pin, step.reason)


def _unnetted(reading: InputReader, step: ComputeStage, inputs: list[Input]) -> Operator:
    """Return the step's plan; in full, states are netted only if a row may have gone from them."""
    if step.mode != "FULL":
        return step.plan
    adding = frozenset(
        plan_input.relation
        for plan_input, input_ in zip(step.inputs, inputs, strict=True)
        if plan_input.version == "after" and reading.only_adds(plan_input, input_)
    )
    plan = drop_nets(step.plan, adding)
    return step.plan if plan == step.plan else plan


def _in_one_task(reading: InputReader, step: ComputeStage, inputs: list[Input]) -> bool:
    """Return whether one task reads the inputs before several could be started."""
    if step.mode == "FULL":
        return reading.is_small(step.inputs)
    pairs = tuple(zip(step.inputs, inputs, strict=True))
    stored = sum(reading.size(plan_input) for plan_input, input_ in pairs if input_.rows is None)
    rows: int = stored + sum(input_.rows.num_rows for _, input_ in pairs if input_.rows is not None)
    return stored <= MOST_FROM_FILES and rows <= MOST_IN_ONE_TASK


def _settled(
    paths: AccessPaths, again: ComputeStage, rows: pa.Table, relation: Relation
) -> pa.Table | TooLarge:
    """Return the rows with stale groups replaced by the result of a second query."""
    fresh = rows.filter(pc.invert(rows[STALE.id])).drop_columns(STALE.id)
    stale = rows.filter(rows[STALE.id])
    if stale.num_rows == 0:
        return fresh
    reading = paths.reading
    inputs = [
        _keys(plan_input, stale, relation)
        if plan_input.version == "stale"
        else reading.input(plan_input)
        for plan_input in again.inputs
    ]
    paths.read.extend(plan_input for plan_input in again.inputs if plan_input.version != "stale")
    if again.reduction is not None:
        inputs = reduced(paths, again.reduction, again.inputs, inputs).inputs
    inputs = list(map(reading.in_memory, again.inputs, inputs))
    recomputed = paths.engine.runner.collect(again.sql, inputs, limit=reading.limit)
    if isinstance(recomputed, TooLarge):
        return recomputed
    schema = stored_schema(relation)
    return pa.concat_tables([fresh.cast(schema), recomputed.cast(schema)])


def _keys(plan_input: PlanInput, stale: pa.Table, relation: Relation) -> Input:
    types = dict(relation.columns)
    schema = pa.schema([(WEIGHT, pa.int64()), *((c, types[c].arrow) for c in plan_input.columns)])
    return Input(plan_input.name, schema, rows=stale.select(schema.names).cast(schema))


def _grows(
    reading: InputReader, step: ComputeStage, inputs: list[Input], moved: frozenset[str]
) -> bool:
    """Return whether to take in the change by the query for changes that take no row away.

    That query needs such a change. A small change is taken in by it only if that was expected,
    because another text would cost more than it spares; a large one whenever its files show it.
    """
    if not step.stage.may_be_stale:
        return False
    changes = [
        (plan_input, input_)
        for plan_input, input_ in zip(step.inputs, inputs, strict=True)
        if plan_input.version == "change" and plan_input.relation in moved
    ]
    if not step.grows and all(input_.rows is not None for _, input_ in changes):
        return False
    grown = frozenset(
        plan_input.relation
        for plan_input, input_ in changes
        if reading.only_adds(plan_input, input_)
    )
    return only_grows(step.stage.region, moved, grown)


def _moved(step: ComputeStage, inputs: list[Input]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the relations whose changes the step reads, and those of them that may have rows.

    A change in memory is netted, so it is known to be empty; one in files is not.
    """
    changes = {
        plan_input.relation: input_
        for plan_input, input_ in zip(step.inputs, inputs, strict=True)
        if plan_input.version == "change"
    }
    moved = (
        name for name, input_ in changes.items() if input_.rows is None or input_.rows.num_rows
    )
    return frozenset(changes), frozenset(moved)
