"""Relations as inputs of a Spark query: which epochs, from memory or from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.records import Relation
from headrace.catalog.state import State
from headrace.render import PlanInput
from headrace.spark.run import Input
from headrace.store import (
    WEIGHT,
    By,
    Keys,
    LogFile,
    LookupCost,
    Store,
    least_weight,
    net,
    net_retracted,
)

SMALL_ROWS = 10_000
# Rows that are handed to Spark travel with the task that reads them. Spark takes 128 MB for one.
MOST_BYTES = 96 << 20
# Rows take about twice as much in memory as in a file.
UNPACKED = 2
MOST_FOUND = 2_000_000


@dataclass(frozen=True)
class InputReader:
    """What one refresh of one table reads: each relation before (its frontier) and after.

    After is as far as the relation is published, or as `upto` says where that is less. A change is
    given netted over the columns that are read, so an update of other columns is no change at all.
    Changes of up to `limit` rows, and some `MOST_BYTES`, come from memory; larger ones stay in
    their files and are netted by the query.
    """

    store: Store
    state: State
    frontier: Mapping[str, int]
    limit: int
    upto: Mapping[str, int] = field(default_factory=dict)

    def span(self, name: str, version: str) -> tuple[int, int]:
        """Return the epochs (after, upto] that a version of a relation is made of."""
        relation = self.state.relation(name)
        before = min(self.frontier.get(name, relation.pin.epoch), relation.pin.epoch)
        after = min(self.upto.get(name, relation.pin.epoch), relation.pin.epoch)
        match version:
            case "change":
                return before, after
            case "before":
                return 0, before
            case _:
                return 0, after

    def input(self, plan_input: PlanInput) -> Input:
        """Return the input under the name that the query's text uses."""
        relation = self.state.relation(plan_input.relation)
        after, upto = self.span(plan_input.relation, plan_input.version)
        types = dict(relation.columns)
        schema = pa.schema(
            [(WEIGHT, pa.int64()), *((c, types[c].arrow) for c in plan_input.columns)]
        )
        if plan_input.version == "change" and not self.is_large(plan_input.relation):
            rows = self._netted(relation, after, upto, plan_input.columns)
            return Input(plan_input.name, schema, rows=rows)
        return self._from_files(plan_input, schema, after, upto)

    def _from_files(self, plan_input: PlanInput, schema: pa.Schema, after: int, upto: int) -> Input:
        relation = self.state.relation(plan_input.relation)
        files = self.store.files(plan_input.relation, relation.pin, after, upto)
        return Input(plan_input.name, schema, files=tuple(file.uri for file in files))

    def in_memory(self, plan_input: PlanInput, input_: Input) -> Input:
        """Return the input with the rows of its files instead of the files, if these are few.

        Spark then plans the same query once, however many files there come to be.
        """
        if not input_.files or input_.rows is not None or self.size(plan_input) > SMALL_ROWS:
            return input_
        pin = self.state.relation(plan_input.relation).pin
        rows = self.store.read(
            plan_input.relation, pin, *self.span(plan_input.relation, plan_input.version)
        )
        return replace(
            input_, files=(), rows=net_retracted(rows.select([WEIGHT, *plan_input.columns]))
        )

    def only_adds(self, plan_input: PlanInput, input_: Input) -> bool:
        """Return whether a change, as it is given, is known to take no row away."""
        if input_.rows is not None:
            least = least_weight(input_.rows)
            return least is None or least > 0
        return all(file.only_adds for file in self._files(plan_input))

    def lookup(self, plan_input: PlanInput, keys: Keys, *, by: By = "best") -> pa.Table:
        """Return the stored rows of an input that have one of the keys, not netted.

        A result of more than `most_found` rows is incomplete.
        """
        name, pin = plan_input.relation, self.state.relation(plan_input.relation).pin
        _, upto = self.span(name, plan_input.version)
        most = self.most_found(plan_input)
        return self.store.lookup(name, pin, keys, plan_input.columns, upto, most, by=by)

    def most_found(self, plan_input: PlanInput) -> int:
        """Return how many rows of an input may be looked up: as many as take `MOST_BYTES`, roughly.

        Spark takes many times as long to read the whole input, so these may be more than the limit.
        """
        files = self._files(plan_input)
        rows, stored = sum(file.rows for file in files), sum(file.bytes for file in files)
        fitting = MOST_BYTES * rows // max(1, UNPACKED * stored)
        return max(self.limit, min(MOST_FOUND, fitting))

    def lookup_cost(self, plan_input: PlanInput, keys: Keys) -> LookupCost:
        """Return how many stored rows of an input a lookup compares with the keys."""
        pin = self.state.relation(plan_input.relation).pin
        _, upto = self.span(plan_input.relation, plan_input.version)
        return self.store.lookup_cost(plan_input.relation, pin, keys, plan_input.columns, upto)

    def size(self, plan_input: PlanInput) -> int:
        """Return how many stored rows an input is made of, before they are netted."""
        return sum(file.rows for file in self._files(plan_input))

    def _files(self, plan_input: PlanInput) -> tuple[LogFile, ...]:
        pin = self.state.relation(plan_input.relation).pin
        return self.store.files(
            plan_input.relation, pin, *self.span(plan_input.relation, plan_input.version)
        )

    def is_small(self, inputs: Iterable[PlanInput], more: int = 0) -> bool:
        """Return whether one task reads these inputs and rows before several could be started."""
        return sum(map(self.size, inputs)) + more <= SMALL_ROWS

    def is_large(self, name: str) -> bool:
        """Return whether the relation's change is too large to be netted in memory."""
        relation = self.state.relation(name)
        after, upto = self.span(name, "change")
        files = self.store.files(name, relation.pin, after, upto)
        rows, stored = sum(file.rows for file in files), sum(file.bytes for file in files)
        return rows > self.limit or UNPACKED * stored > MOST_BYTES

    def change(self, relation: Relation) -> pa.Table:
        """Return the change that readers of the relation see: its visible columns, netted."""
        return self._shown(relation, *self.span(relation.id, "change"))

    def rows(self, relation: Relation) -> pa.Table:
        """Return the rows that readers of the relation see, netted."""
        return self._shown(relation, *self.span(relation.id, "after"))

    def stored(self, relation: Relation) -> pa.Table:
        """Return all columns of the relation's rows before, netted."""
        names = tuple(name for name, _ in relation.columns)
        return self._netted(relation, *self.span(relation.id, "before"), names)

    def _shown(self, relation: Relation, after: int, upto: int) -> pa.Table:
        rows = self._read(relation, after, upto)
        if relation.condition is not None:
            rows = rows.filter(pc.field(relation.condition))
        return net(rows.select([WEIGHT, *relation.visible]))

    def _netted(
        self, relation: Relation, after: int, upto: int, columns: tuple[str, ...]
    ) -> pa.Table:
        return net(self._read(relation, after, upto).select([WEIGHT, *columns]))

    def _read(self, relation: Relation, after: int, upto: int) -> pa.Table:
        rows = self.store.cached(relation.id, relation.pin, after, upto)
        if rows is None:
            rows = self.store.read(relation.id, relation.pin, after, upto)
        return rows
