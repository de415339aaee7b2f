"""A loop's rounds on Spark: one query for each relation of the loop and round.

The rows that a round finds pass through this process, whatever their number: they are what the
next round starts from. What is stored, and what is outside, is read by Spark from its files; while
a change is taken in, every round reads the same again, so Spark keeps it in memory meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from headrace.delta.fixed_point import RoundInputs
from headrace.engine import Engine
from headrace.plan.loop import LEVEL, Loop, Variable
from headrace.plan.operators import Operator
from headrace.refresh.plan import netted
from headrace.relations.input_reader import InputReader
from headrace.relations.rows import negated
from headrace.render import PlanInput, inputs_of, render
from headrace.spark.profiles import Profile
from headrace.spark.run import Input, TooLarge
from headrace.spark.schema import to_schema
from headrace.store import WEIGHT, net

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

    def run(self, variable: Variable, plan: Operator, given: RoundInputs[pa.Table]) -> pa.Table:
        wanted = [self._widened(one) for one in inputs_of(plan)]
        inputs = [self._input(one, given) for one in wanted]
        large = frozenset(
            one.relation
            for one, found in zip(wanted, inputs, strict=True)
            if one.version == "change" and found.rows is None
        )
        tiny = not large and self._is_small(wanted, inputs)
        profile: Profile = "tiny" if tiny else "wide"
        text = _text(plan, variable.physical, large, tiny)
        rows = self.engine.runner.collect(text, inputs, profile=profile)
        assert not isinstance(rows, TooLarge)
        return to_schema(rows, schema_of(variable))

    def sum(self, variable: Variable, *rows: pa.Table) -> pa.Table:
        some = [one for one in rows if one.num_rows]
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
            for one in inputs_of(variable.body):
                read.setdefault(one.relation, set()).update(one.columns)
        return {relation: tuple(sorted(columns)) for relation, columns in read.items()}

    def _widened(self, wanted: PlanInput) -> PlanInput:
        return PlanInput(wanted.relation, wanted.version, self._read[wanted.relation])

    def _input(self, wanted: PlanInput, given: RoundInputs[pa.Table]) -> Input:
        name = wanted.relation
        if name not in self.loop.relations:
            return self._from_log(wanted)
        (variable,) = (v for v in self.loop.variables if v.relation == name)
        schema = schema_of(variable)
        match wanted.version:
            case "found":
                return Input(wanted.name, schema, rows=given.found[name])
            case "lost":
                return Input(wanted.name, schema, rows=given.lost.get(name))
        rows = given.after.get(name) if wanted.version == "after" else None
        if not self.stored:
            return Input(wanted.name, schema, rows=rows)
        before = self._from_log(PlanInput(name, "before", wanted.columns))
        if before.rows is not None and rows is not None:
            stored = to_schema(before.rows, schema)
            rows = pa.concat_tables([stored, to_schema(rows, schema)])
        return replace(
            before, name=wanted.name, schema=schema, rows=before.rows if rows is None else rows
        )

    def _from_log(self, wanted: PlanInput) -> Input:
        """An input that is the same in every round."""
        if wanted not in self._outside:
            self._outside[wanted] = self._read_once(wanted)
        return self._outside[wanted]

    def _read_once(self, wanted: PlanInput) -> Input:
        found = self.reading.in_memory(wanted, self.reading.input(wanted))
        if not self.change or not found.files or self.reading.size(wanted) > MOST_KEPT_ROWS:
            return found
        if wanted.version == "after":
            change = self.reading.input(replace(wanted, version="change"))
            if change.rows is not None:
                # The same files as before, which are in memory then.
                before = self.reading.input(replace(wanted, version="before"))
                found = replace(before, name=wanted.name, rows=change.rows)
        return replace(found, kept_for=self.name)

    def release(self) -> None:
        """Let go of what Spark keeps for the rounds."""
        self.engine.runner.release(self.name)

    def _is_small(self, wanted: Iterable[PlanInput], inputs: Iterable[Input]) -> bool:
        """Whether one task is enough: of a change, or if there is little to read at all."""
        rows = sum(self.count(one.rows) for one in inputs if one.rows is not None)
        if self.change:
            return rows <= self.reading.limit
        logs = [one for one in wanted if one.relation not in self.loop.relations]
        return self.reading.is_small(logs, rows)


def schema_of(variable: Variable) -> pa.Schema:
    """The weighted rows of a relation of a loop."""
    columns = ((physical, column.type.arrow) for physical, column in variable.fields)
    return pa.schema([(WEIGHT, pa.int64()), *columns])


@lru_cache(maxsize=4096)
def _text(plan: Operator, names: tuple[str, ...], large: frozenset[str], tiny: bool) -> str:
    return render(netted(plan, large) if large else plan, names, one_partition=tiny)
