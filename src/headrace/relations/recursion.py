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
    """The rows of all levels, weighted, and how many levels there were.

    `names` are the physical columns of the variable, in the order of the recursion's.
    """
    return _Native(engine, reading, most).levels(recursion, names, {})


def materialised(
    engine: Engine, plan: Operator, reading: InputReader, most: int
) -> tuple[Operator, list[Input]]:
    """The plan with every recursion replaced by a scan of its rows, and all of its inputs."""
    native = _Native(engine, reading, most)
    whole, given = native.materialised(plan, {})
    return whole, native.inputs(inputs_of(whole), given)


def least_fixed_point(
    engine: Engine, bodies: Mapping[str, Operator], reading: InputReader, most: int
) -> dict[str, pa.Table]:
    """The rows of relations that read each other, every row once: the least that fit all bodies."""
    native = _Native(engine, reading, most)
    columns = {relation: body.columns for relation, body in bodies.items()}
    rows = {name: _schema(of, numbered(of)).empty_table() for name, of in columns.items()}
    rounds = 0
    while True:
        found = {
            name: native.new(body, numbered(columns[name]), rows[name], rows)
            for name, body in bodies.items()
        }
        count = sum(one.num_rows for one in found.values())
        if not count:
            return rows
        rounds += 1
        if rounds > most:
            raise NotConverged(rounds, count)
        rows = {name: pa.concat_tables([rows[name], found[name]]) for name in bodies}


@dataclass(frozen=True)
class _Native:
    """Runs queries over the states after, and over given rows."""

    engine: Engine
    reading: InputReader
    most: int

    def levels(
        self, recursion: Recursive, names: tuple[str, ...], given: Given
    ) -> tuple[pa.Table, int]:
        total = _schema(recursion.columns, names).empty_table()
        found = self._level(recursion, recursion.base, names, total, given)
        count = 0
        # The step is evaluated once, also over a base without rows.
        while found.num_rows or not count:
            count += 1
            if count > self.most:
                raise NotConverged(count, found.num_rows)
            total = pa.concat_tables([total, found])
            before = {**given, recursion.variable: found}
            found = self._level(recursion, recursion.step, names, total, before)
        return total, count

    def _level(
        self,
        recursion: Recursive,
        plan: Operator,
        names: tuple[str, ...],
        total: pa.Table,
        given: Given,
    ) -> pa.Table:
        if recursion.once:
            return self.new(plan, names, total, given)
        plan, given = self.materialised(plan, given)
        return self._run(render_native(plan, names), inputs_of(plan), plan.columns, names, given)

    def new(
        self, plan: Operator, names: tuple[str, ...], known: pa.Table, given: Given
    ) -> pa.Table:
        """Every row of the plan once that is not known."""
        plan, given = self.materialised(plan, given)
        relation = "known"
        while relation in given:
            relation += "_"
        scan = Scan(relation, tuple(zip(names, plan.columns, strict=True)))
        wanted = (*inputs_of(plan), *inputs_of(scan))
        text = render_new(plan, names, scan)
        return self._run(text, wanted, plan.columns, names, {**given, relation: known})

    def materialised(self, plan: Operator, given: Given) -> tuple[Operator, Given]:
        """The plan without recursions, and what it is to be given."""
        rows = dict(given)
        scans: dict[Recursive, Scan] = {}

        def replaced(node: Operator) -> Operator:
            if not isinstance(node, Recursive):
                return node.with_children(*map(replaced, node.children))
            if node not in scans:
                names = numbered(node.columns)
                name = f"{node.variable}_rows_{len(rows)}"
                rows[name], _ = self.levels(node, names, given)
                scans[node] = Scan(name, tuple(zip(names, node.columns, strict=True)))
            return scans[node]

        return replaced(plan), rows

    def inputs(self, wanted: tuple[PlanInput, ...], given: Given) -> list[Input]:
        return [
            Input(one.name, given[one.relation].schema, rows=given[one.relation])
            if one.relation in given
            else self.reading.in_memory(one, self.reading.input(one))
            for one in wanted
        ]

    def _run(
        self,
        text: str,
        wanted: tuple[PlanInput, ...],
        columns: tuple[Column, ...],
        names: tuple[str, ...],
        given: Given,
    ) -> pa.Table:
        """The query's rows, each with weight 1."""
        logs = [one for one in wanted if one.relation not in given]
        more = sum(given[one.relation].num_rows for one in wanted if one.relation in given)
        profile: Profile = "tiny" if self.reading.is_small(logs, more) else "wide"
        inputs = self.inputs(wanted, given)
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
    """What a user is told about tables of a cycle, or one whose recursion does not end."""
    names = sorted(f"{one.schema}.{one.name}" for one in tables)
    setting = "max_fixpoint_iterations" if cycle else "max_recursion_levels"
    return UserError(
        "not-converged",
        f"stream table{'s' * (len(names) > 1)} {', '.join(names)}"
        f" found no end in {error.iterations - 1} rounds",
        detail=f"One round more found {error.rows} new rows. Nothing was published.",
        hint="A condition in the query can bound the recursion, such as one on its depth or on the"
        f" path so far. If there is an end, raise {setting}.",
    )
