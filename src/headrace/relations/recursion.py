"""Recursions and cycles by their definitions: ordinary queries, repeated until nothing new comes.

This is how `verify` recomputes them, and how a recursion is computed that no loop can follow. It
shares nothing with the rounds of a loop. The rows pass through this process, whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.algebra.scalar import Column
from headrace.catalog.records import StreamTable
from headrace.delta.fixed_point import NotConverged
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.plan.operators import Operator, Recursive, Scan
from headrace.relations.input_reader import InputReader
from headrace.render import PlanInput, inputs_of
from headrace.render.native import render_native, render_new
from headrace.spark.profiles import Profile
from headrace.spark.run import Input, TooLarge
from headrace.spark.schema import to_schema
from headrace.store import WEIGHT

Given = Mapping[str, pa.Table]
"""Weighted rows of relations that have no log."""


def levels(
    engine: Engine, recursion: Recursive, names: tuple[str, ...], reading: InputReader, most: int
) -> tuple[pa.Table, int]:
    """Return the rows of all levels, weighted, and the number of levels.

    `names` are the physical columns of the variable, in the order of the recursion's.
    """
    return _Native(engine, reading, most).levels(recursion, names, {})


def materialised(
    engine: Engine, plan: Operator, reading: InputReader, most: int
) -> tuple[Operator, list[Input]]:
    """Return the plan with recursions replaced by scans of their rows, and all its inputs."""
    native = _Native(engine, reading, most)
    whole, unlogged = native.materialised(plan, {})
    return whole, native.inputs(inputs_of(whole), unlogged)


def least_fixed_point(
    engine: Engine, bodies: Mapping[str, Operator], reading: InputReader, most: int
) -> dict[str, pa.Table]:
    """Return the rows of relations that read each other: the least fixed point of all bodies."""
    native = _Native(engine, reading, most)
    columns = {relation: body.columns for relation, body in bodies.items()}
    rows = {name: _schema(of, numbered(of)).empty_table() for name, of in columns.items()}
    rounds = 0
    while True:
        new_rows = {
            name: native.new(body, numbered(columns[name]), rows[name], rows)
            for name, body in bodies.items()
        }
        count = sum(rows_of_relation.num_rows for rows_of_relation in new_rows.values())
        if not count:
            return rows
        rounds += 1
        if rounds > most:
            raise NotConverged(rounds, count)
        rows = {name: pa.concat_tables([rows[name], new_rows[name]]) for name in bodies}


@dataclass(frozen=True)
class _Native:
    """Runs queries over the states after, and over given rows."""

    engine: Engine
    reading: InputReader
    most: int

    def levels(
        self, recursion: Recursive, names: tuple[str, ...], unlogged: Given
    ) -> tuple[pa.Table, int]:
        total = _schema(recursion.columns, names).empty_table()
        level = self._level(recursion, recursion.base, names, total, unlogged)
        count = 0
        # The step is evaluated once, also over a base without rows.
        while level.num_rows or not count:
            count += 1
            if count > self.most:
                raise NotConverged(count, level.num_rows)
            total = pa.concat_tables([total, level])
            before = {**unlogged, recursion.variable: level}
            level = self._level(recursion, recursion.step, names, total, before)
        return total, count

    def _level(
        self,
        recursion: Recursive,
        plan: Operator,
        names: tuple[str, ...],
        total: pa.Table,
        unlogged: Given,
    ) -> pa.Table:
        if recursion.once:
            return self.new(plan, names, total, unlogged)
        plan, unlogged = self.materialised(plan, unlogged)
        return self._run(render_native(plan, names), inputs_of(plan), plan.columns, names, unlogged)

    def new(
        self, plan: Operator, names: tuple[str, ...], present: pa.Table, unlogged: Given
    ) -> pa.Table:
        """Return every row of the plan that is not among those `present`, once."""
        plan, unlogged = self.materialised(plan, unlogged)
        relation = "known"
        while relation in unlogged:
            relation += "_"
        scan = Scan(relation, tuple(zip(names, plan.columns, strict=True)))
        plan_inputs = (*inputs_of(plan), *inputs_of(scan))
        text = render_new(plan, names, scan)
        return self._run(text, plan_inputs, plan.columns, names, {**unlogged, relation: present})

    def materialised(self, plan: Operator, unlogged: Given) -> tuple[Operator, Given]:
        """Return the plan with recursions replaced by scans of their rows, and all its inputs."""
        rows = dict(unlogged)
        scans: dict[Recursive, Scan] = {}

        def replaced(node: Operator) -> Operator:
            if not isinstance(node, Recursive):
                return node.with_children(*map(replaced, node.children))
            if node not in scans:
                names = numbered(node.columns)
                name = f"{node.variable}_rows_{len(rows)}"
                rows[name], _ = self.levels(node, names, unlogged)
                scans[node] = Scan(name, tuple(zip(names, node.columns, strict=True)))
            return scans[node]

        return replaced(plan), rows

    def inputs(self, plan_inputs: tuple[PlanInput, ...], unlogged: Given) -> list[Input]:
        return [
            Input(
                plan_input.name,
                unlogged[plan_input.relation].schema,
                rows=unlogged[plan_input.relation],
            )
            if plan_input.relation in unlogged
            else self.reading.in_memory(plan_input, self.reading.input(plan_input))
            for plan_input in plan_inputs
        ]

    def _run(
        self,
        text: str,
        plan_inputs: tuple[PlanInput, ...],
        columns: tuple[Column, ...],
        names: tuple[str, ...],
        unlogged: Given,
    ) -> pa.Table:
        """Return the query's rows, each with weight 1."""
        logs = [plan_input for plan_input in plan_inputs if plan_input.relation not in unlogged]
        more = sum(
            unlogged[plan_input.relation].num_rows
            for plan_input in plan_inputs
            if plan_input.relation in unlogged
        )
        profile: Profile = "tiny" if self.reading.is_small(logs, more) else "wide"
        inputs = self.inputs(plan_inputs, unlogged)
        rows = self.engine.runner.collect(text, inputs, profile=profile)
        assert not isinstance(rows, TooLarge)
        weights = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
        return to_schema(rows.add_column(0, WEIGHT, weights), _schema(columns, names))


def numbered(columns: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(1, len(columns) + 1))


def _schema(columns: tuple[Column, ...], names: tuple[str, ...]) -> pa.Schema:
    types = (column.type.arrow for column in columns)
    return pa.schema([(WEIGHT, pa.int64()), *zip(names, types, strict=True)])


def endless(error: NotConverged, tables: Iterable[StreamTable], *, cycle: bool) -> UserError:
    """Return the error of a recursion, or of tables of a cycle, that does not converge."""
    names = sorted(f"{table.schema}.{table.name}" for table in tables)
    setting = "max_fixpoint_iterations" if cycle else "max_recursion_levels"
    return UserError(
        "not-converged",
        f"stream table{'s' * (len(names) > 1)} {', '.join(names)}"
        f" did not converge in {error.iterations - 1} rounds",
        detail=f"Another round found {error.rows} new rows. Nothing was published.",
        hint="A condition in the query can bound the recursion, such as one on its depth or on the"
        f" path so far. If there is an end, raise {setting}.",
    )
