"""Performing a loop's step: its rounds, or a recursion anew; what its relations are to append."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.definition import used_columns
from headrace.engine import Engine
from headrace.refresh.clock import Clock
from headrace.refresh.loop import compute_loop, recomputed
from headrace.relations.reading import Reading
from headrace.render import PlanInput, inputs_of
from headrace.steps import ComputeLoop


@dataclass(frozen=True)
class LoopRun:
    """The weighted rows that each relation of a loop appends, after how many rounds.

    `inputs` are the states outside that it read.
    """

    rows: Mapping[str, pa.Table]
    iterations: int
    inputs: tuple[PlanInput, ...]


def run_loop(
    engine: Engine, step: ComputeLoop, reading: Reading, most: int, clock: Clock
) -> LoopRun | None:
    """Run the loop; None if nothing that it reads has changed after all."""
    own = frozenset(stage.relation for stage in step.stages)
    inputs = tuple(
        dict.fromkeys(
            wanted
            for stage in step.stages
            for wanted in inputs_of(stage.region)
            if wanted.relation not in own
        )
    )
    stored = any(reading.span(name, "before")[1] > 0 for name in own)
    loop = step.loop
    full = step.mode == "FULL"
    with clock.phase("read"):
        changed = frozenset(name for name in step.changed if _has_changed(reading, step, name))
    if stored and not changed and not full:
        return None
    with clock.phase("compute"):
        if loop is None:
            (stage,) = step.stages
            rows, iterations = recomputed(engine, stage, reading, stored=stored, most=most)
        else:
            rows, iterations = compute_loop(
                engine, loop, reading, full=full, stored=stored, changed=changed, most=most
            )
    return LoopRun(rows, iterations, inputs)


def _has_changed(reading: Reading, step: ComputeLoop, name: str) -> bool:
    """Whether a relation outside has rows beyond what was taken in that some stage reads."""
    read: set[str] = set()
    for stage in step.stages:
        read |= used_columns(stage.region, name)
    if not read:
        return False
    after, upto = reading.span(name, "change")
    if after == upto:
        return False
    if reading.is_large(name):
        return True
    rows = reading.input(PlanInput(name, "change", tuple(sorted(read)))).rows
    return rows is None or rows.num_rows > 0
