"""Performing the computing steps: each stage's query runs once and its rows are appended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.catalog import State
from headrace.catalog.records import Relation, StreamTable
from headrace.engine import Engine
from headrace.plan.operators import Net
from headrace.refresh.clock import Clock
from headrace.refresh.plan import netted
from headrace.relations.reading import Reading
from headrace.relations.rows import stored_schema, with_epoch
from headrace.render import render
from headrace.spark.profiles import Profile
from headrace.spark.run import Input, TooLarge
from headrace.steps import ComputeStage, Step
from headrace.store import Pin, net


def compute(
    engine: Engine,
    table: StreamTable,
    steps: tuple[Step, ...],
    state: State,
    relations: Mapping[str, Relation],
    epoch: int,
    clock: Clock,
) -> dict[str, Relation]:
    """Run every stage and append its rows at `epoch`; gives its relations with their new pins.

    `relations` are those that the table's stages write. Nothing counts before it is published.
    """
    written = dict(relations)
    limit = engine.settings(state).collect_rows
    for step in steps:
        if isinstance(step, ComputeStage):
            frontier = {**table.frontier, **dict.fromkeys(written, table.epoch)}
            current = state.with_relations(written.values())
            reading = Reading(engine.store, current, frontier, epoch, limit)
            relation = written[step.stage.relation]
            with engine.step(step):
                pin = _compute_stage(engine, step, reading, relation, epoch, clock)
            written[relation.id] = replace(relation, pin=pin)
    return written


def _compute_stage(
    engine: Engine,
    step: ComputeStage,
    reading: Reading,
    relation: Relation,
    epoch: int,
    clock: Clock,
) -> Pin:
    names = tuple(physical for physical, _ in step.stage.stored)
    with clock.phase("read"):
        inputs = [reading.input(wanted) for wanted in step.inputs]
    if step.mode == "DIFFERENTIAL" and not any(map(_may_have_rows, _changes(step, inputs))):
        return relation.pin
    large = frozenset(
        wanted.relation
        for wanted, given in zip(step.inputs, inputs, strict=True)
        if wanted.version == "change" and given.rows is None
    )
    plan = netted(step.plan, large) if large else step.plan
    text = render(plan, names) if large else step.sql
    profile: Profile = "wide" if large or step.mode == "FULL" else "tiny"
    with clock.phase("compute"):
        rows = engine.runner.collect(text, inputs, profile=profile, limit=reading.limit)
    if isinstance(rows, TooLarge):
        folder = engine.store.new_folder(relation.id, epoch)
        with clock.phase("compute"):
            engine.runner.write(with_epoch(render(Net(plan), names), epoch), inputs, folder)
        with clock.phase("commit"):
            return engine.store.register(relation.id, relation.pin, epoch, folder)
    with clock.phase("commit"):
        rows = net(rows.cast(stored_schema(relation)))
        if rows.num_rows == 0:
            return relation.pin
        return engine.store.append(relation.id, relation.pin, epoch, rows)


def _changes(step: ComputeStage, inputs: list[Input]) -> list[Input]:
    return [
        given
        for wanted, given in zip(step.inputs, inputs, strict=True)
        if wanted.version == "change"
    ]


def _may_have_rows(change: Input) -> bool:
    """A change in memory is netted, so it is known to be empty; one in files is not."""
    return change.rows is None or change.rows.num_rows > 0
