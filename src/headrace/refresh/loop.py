"""What the relations of a loop append: from its rounds, or from a recursion computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from headrace.catalog.records import Relation
from headrace.delta.fixed_point import Rounds
from headrace.engine import Engine
from headrace.engine.steps import ComputeLoop
from headrace.plan.loop import Loop
from headrace.plan.stage import Stage
from headrace.refresh.loop_rounds import SparkMachine
from headrace.refresh.phase_times import Clock
from headrace.relations.definition import used_columns
from headrace.relations.input_reader import InputReader
from headrace.relations.recursion import levels
from headrace.relations.rows import negated, stored_schema
from headrace.render import PlanInput, inputs_of
from headrace.spark.schema import to_schema
from headrace.store import net

Rows = dict[str, pa.Table]
"""The weighted rows that every relation appends, netted."""


@dataclass(frozen=True)
class LoopRun:
    """The weighted rows that each relation of a loop appends, after how many rounds.

    `inputs` are the states outside that it read.
    """

    rows: Mapping[str, pa.Table]
    iterations: int
    inputs: tuple[PlanInput, ...]


def run_loop(
    engine: Engine, step: ComputeLoop, reading: InputReader, most: int, clock: Clock
) -> LoopRun | None:
    """Run the loop, at most so many rounds; None if nothing that it reads has changed after all.

    `NotConverged` is raised where it finds no end.
    """
    own = frozenset(stage.relation for stage in step.stages)
    inputs = tuple(
        dict.fromkeys(
            wanted
            for stage in step.stages
            for wanted in inputs_of(stage.region)
            if wanted.relation not in own
        )
    )
    # A relation may have been computed and have no rows, so its log does not tell.
    stored = any(reading.frontier.get(name, 0) > 0 for name in own)
    loop = step.loop
    full = step.mode == "FULL"
    with clock.phase("read"):
        changes = {name: _change(reading, step, name) for name in step.changed}
        changed = frozenset(name for name, change in changes.items() if change is not None)
        grown = frozenset(name for name, change in changes.items() if change == "grown")
    if stored and not changed and not full:
        return None
    with clock.phase("compute"):
        if loop is None:
            (stage,) = step.stages
            rows, iterations = _recomputed(engine, stage, reading, stored=stored, most=most)
        else:
            rows, iterations = compute_loop(
                engine,
                loop,
                reading,
                full=full,
                stored=stored,
                changed=changed,
                most=most,
                grown=grown,
            )
    return LoopRun(rows, iterations, inputs)


def _change(
    reading: InputReader, step: ComputeLoop, name: str
) -> Literal["changed", "grown"] | None:
    """Whether a relation outside has rows beyond what was taken in that some stage reads.

    It has grown if none of them takes one away.
    """
    read: set[str] = set()
    for stage in step.stages:
        read |= used_columns(stage.region, name)
    if not read:
        return None
    after, upto = reading.span(name, "change")
    if after == upto:
        return None
    wanted = PlanInput(name, "change", tuple(sorted(read)))
    given = reading.input(wanted)
    if given.rows is not None and not given.rows.num_rows:
        return None
    return "grown" if reading.only_adds(wanted, given) else "changed"


def compute_loop(
    engine: Engine,
    loop: Loop,
    reading: InputReader,
    *,
    full: bool,
    stored: bool,
    changed: frozenset[str],
    most: int,
    grown: frozenset[str] = frozenset(),
) -> tuple[Rows, int]:
    """Run the rounds of a loop, at most so many; the rows to append, and how many there were.

    `stored` says that there are rows of an earlier refresh. A `full` evaluation does not look at
    them before its end; else what they lack is found from the changes of `changed`, of which those
    that have `grown` lost nothing.
    """
    anew = full or not stored
    machine = SparkMachine(engine, loop, reading, stored=not anew, change=not anew)
    rounds = Rounds(loop, machine, most)
    try:
        found = rounds.full() if anew else rounds.changed(changed, grown)
    finally:
        machine.release()
    rows = {}
    for name, change in found.changes.items():
        relation = reading.state.relation(name)
        rows[name] = _appended(reading, relation, change, replaces=stored and full)
    return rows, found.iterations


def _recomputed(
    engine: Engine, stage: Stage, reading: InputReader, *, stored: bool, most: int
) -> tuple[Rows, int]:
    """A recursion that no loop can follow, by its definition; as what is to be appended."""
    recursion = stage.recursion
    assert recursion is not None
    shown = (column for _, column in stage.outputs)
    places = dict(zip(shown, (physical for physical, _ in stage.visible), strict=True))
    names = tuple(places[column] for column in recursion.columns)
    rows, iterations = levels(engine, recursion, names, reading, most)
    relation = reading.state.relation(stage.relation)
    return {stage.relation: _appended(reading, relation, rows, replaces=stored)}, iterations


def _appended(
    reading: InputReader, relation: Relation, rows: pa.Table, *, replaces: bool
) -> pa.Table:
    """Rows that are added to what is stored, or that replace it, as the log keeps them."""
    wanted = to_schema(rows, stored_schema(relation))
    if not replaces:
        return net(wanted)
    old = to_schema(reading.stored(relation), wanted.schema)
    return net(pa.concat_tables([wanted, negated(old)]))
