"""Compute what the relations of a loop append: by rounds on Spark, or by a recursion recomputed.

There is one query for each relation of the loop and round. The rows that a round finds pass through
this process, whatever their number: the next round starts from them. Spark reads stored and outside
rows from their files; while a change is taken in, every round reads the same files, so Spark keeps
them in memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.records import Relation
from headrace.delta.fixed_point import RoundInputs, Rounds
from headrace.engine import Engine
from headrace.engine.steps import ComputeLoop
from headrace.plan.loop import LEVEL, Loop, Variable
from headrace.plan.operators import Operator
from headrace.plan.stage import Stage
from headrace.refresh.attempt import Clock
from headrace.refresh.plan import netted
from headrace.relations.definition import used_columns
from headrace.relations.input_reader import InputReader
from headrace.relations.recursion import levels
from headrace.relations.rows import negated, stored_schema
from headrace.render import PlanInput, inputs_of, render
from headrace.spark.profiles import Profile
from headrace.spark.run import Input, TooLarge
from headrace.spark.schema import to_schema
from headrace.store import WEIGHT, net

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
    """Run at most `most` rounds of the loop; None if no input of the loop has changed after all.

    Raise `NotConverged` if the loop reaches no fixed point.
    """
    own = frozenset(stage.relation for stage in step.stages)
    inputs = tuple(
        dict.fromkeys(
            plan_input
            for stage in step.stages
            for plan_input in inputs_of(stage.region)
            if plan_input.relation not in own
        )
    )
    # A relation may have been computed and have no rows, so its log does not show it.
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
    """Return whether an outside relation `changed` where some stage reads it, or only has `grown`.

    A change counts if it is beyond what was taken in. The relation has grown if no row was taken
    away.
    """
    read: set[str] = set()
    for stage in step.stages:
        read |= used_columns(stage.region, name)
    if not read:
        return None
    after, upto = reading.span(name, "change")
    if after == upto:
        return None
    plan_input = PlanInput(name, "change", tuple(sorted(read)))
    input_ = reading.input(plan_input)
    if input_.rows is not None and not input_.rows.num_rows:
        return None
    return "grown" if reading.only_adds(plan_input, input_) else "changed"


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
    """Run at most `most` rounds of a loop; return the rows to append and the number of rounds.

    `stored` says that there are rows of an earlier refresh. A `full` evaluation compares with them
    only at its end; otherwise the rounds find what they lack from the changes of `changed`, of
    which those that have `grown` lost nothing.
    """
    from_scratch = full or not stored
    machine = SparkMachine(engine, loop, reading, stored=not from_scratch, change=not from_scratch)
    rounds = Rounds(loop, machine, most)
    try:
        result = rounds.full() if from_scratch else rounds.changed(changed, grown)
    finally:
        machine.release()
    rows = {}
    for name, change in result.changes.items():
        relation = reading.state.relation(name)
        rows[name] = _appended(reading, relation, change, replaces=stored and full)
    return rows, result.iterations


def _recomputed(
    engine: Engine, stage: Stage, reading: InputReader, *, stored: bool, most: int
) -> tuple[Rows, int]:
    """Recompute a recursion that no loop can follow; return the rows to append and the levels."""
    recursion = stage.recursion
    assert recursion is not None
    output_columns = (column for _, column in stage.outputs)
    places = dict(zip(output_columns, (physical for physical, _ in stage.visible), strict=True))
    names = tuple(places[column] for column in recursion.columns)
    rows, iterations = levels(engine, recursion, names, reading, most)
    relation = reading.state.relation(stage.relation)
    return {stage.relation: _appended(reading, relation, rows, replaces=stored)}, iterations


def _appended(
    reading: InputReader, relation: Relation, rows: pa.Table, *, replaces: bool
) -> pa.Table:
    """Return the rows to append for `rows` to be added to what is stored, or to replace it."""
    new_rows = to_schema(rows, stored_schema(relation))
    if not replaces:
        return net(new_rows)
    old = to_schema(reading.stored(relation), new_rows.schema)
    return net(pa.concat_tables([new_rows, negated(old)]))


MOST_KEPT_ROWS = 5_000_000


@dataclass
class SparkMachine:
    """Evaluates the plans of a loop over logs; rows are weighted Arrow tables, netted.

    Without `stored` the loop's relations have no rows but those that its rounds find. `change`
    says that the rounds take in a change, so that most of what they read is not looked at.
    """

    engine: Engine
    loop: Loop
    reading: InputReader
    stored: bool
    change: bool
    name: str = field(default_factory=lambda: f"loop-{uuid.uuid4().hex}")
    _outside: dict[PlanInput, Input] = field(default_factory=dict)

    def run(
        self, variable: Variable, plan: Operator, round_inputs: RoundInputs[pa.Table]
    ) -> pa.Table:
        plan_inputs = [self._widened(plan_input) for plan_input in inputs_of(plan)]
        inputs = [self._input(plan_input, round_inputs) for plan_input in plan_inputs]
        large = frozenset(
            plan_input.relation
            for plan_input, input_ in zip(plan_inputs, inputs, strict=True)
            if plan_input.version == "change" and input_.rows is None
        )
        tiny = not large and self._is_small(plan_inputs, inputs)
        profile: Profile = "tiny" if tiny else "wide"
        text = _text(plan, variable.physical, large, tiny)
        rows = self.engine.runner.collect(text, inputs, profile=profile)
        assert not isinstance(rows, TooLarge)
        return to_schema(rows, schema_of(variable))

    def sum(self, variable: Variable, *rows: pa.Table) -> pa.Table:
        some = [row for row in rows if row.num_rows]
        if not some:
            return schema_of(variable).empty_table()
        return some[0] if len(some) == 1 else net(pa.concat_tables(some))

    def negated(self, rows: pa.Table) -> pa.Table:
        return negated(rows)

    def count(self, rows: pa.Table) -> int:
        return int(rows.num_rows)

    def lowest(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        is_lowest = pc.equal(rows[LEVEL], pc.min(rows[LEVEL]))
        return rows.filter(is_lowest), rows.filter(pc.invert(is_lowest))

    @cached_property
    def _read(self) -> dict[str, tuple[str, ...]]:
        """All columns that any plan of the loop may read of a relation.

        Plans of different rounds read different columns; the same view serves all of them.
        """
        read: dict[str, set[str]] = {v.relation: set(v.physical) for v in self.loop.variables}
        for variable in self.loop.variables:
            for plan_input in inputs_of(variable.body):
                read.setdefault(plan_input.relation, set()).update(plan_input.columns)
        return {relation: tuple(sorted(columns)) for relation, columns in read.items()}

    def _widened(self, plan_input: PlanInput) -> PlanInput:
        return PlanInput(plan_input.relation, plan_input.version, self._read[plan_input.relation])

    def _input(self, plan_input: PlanInput, round_inputs: RoundInputs[pa.Table]) -> Input:
        name = plan_input.relation
        if name not in self.loop.relations:
            return self._from_log(plan_input)
        (variable,) = (v for v in self.loop.variables if v.relation == name)
        schema = schema_of(variable)
        match plan_input.version:
            case "found":
                return Input(plan_input.name, schema, rows=round_inputs.found[name])
            case "lost":
                return Input(plan_input.name, schema, rows=round_inputs.lost.get(name))
        rows = round_inputs.after.get(name) if plan_input.version == "after" else None
        if not self.stored:
            return Input(plan_input.name, schema, rows=rows)
        before = self._from_log(PlanInput(name, "before", plan_input.columns))
        if before.rows is not None and rows is not None:
            stored = to_schema(before.rows, schema)
            rows = pa.concat_tables([stored, to_schema(rows, schema)])
        return replace(
            before, name=plan_input.name, schema=schema, rows=before.rows if rows is None else rows
        )

    def _from_log(self, plan_input: PlanInput) -> Input:
        """Return an input that is the same in every round."""
        if plan_input not in self._outside:
            self._outside[plan_input] = self._read_once(plan_input)
        return self._outside[plan_input]

    def _read_once(self, plan_input: PlanInput) -> Input:
        input_ = self.reading.in_memory(plan_input, self.reading.input(plan_input))
        if not self.change or not input_.files or self.reading.size(plan_input) > MOST_KEPT_ROWS:
            return input_
        if plan_input.version == "after":
            change = self.reading.input(replace(plan_input, version="change"))
            if change.rows is not None:
                # The same files as before, which are in memory then.
                before = self.reading.input(replace(plan_input, version="before"))
                input_ = replace(before, name=plan_input.name, rows=change.rows)
        return replace(input_, kept_for=self.name)

    def release(self) -> None:
        """Release what Spark keeps for the rounds."""
        self.engine.runner.release(self.name)

    def _is_small(self, plan_inputs: Iterable[PlanInput], inputs: Iterable[Input]) -> bool:
        """Return whether one task is enough: of a change, or if there is little to read at all."""
        rows = sum(self.count(input_.rows) for input_ in inputs if input_.rows is not None)
        if self.change:
            return rows <= self.reading.limit
        logs = [
            plan_input
            for plan_input in plan_inputs
            if plan_input.relation not in self.loop.relations
        ]
        return self.reading.is_small(logs, rows)


def schema_of(variable: Variable) -> pa.Schema:
    """Return the weighted rows of a relation of a loop."""
    columns = ((physical, column.type.arrow) for physical, column in variable.fields)
    return pa.schema([(WEIGHT, pa.int64()), *columns])


@lru_cache(maxsize=4096)
def _text(plan: Operator, names: tuple[str, ...], large: frozenset[str], tiny: bool) -> str:
    return render(netted(plan, large) if large else plan, names, one_partition=tiny)
