"""Reduce inputs of a delta query to the rows that reach the change, before Spark reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.scalar import Scalar
from headrace.catalog.records import Access
from headrace.delta.drop_terms import scans
from headrace.delta.origins import Path, ScanOrigin
from headrace.delta.reduction import GIVEN, Reduction, Restriction
from headrace.plan.operators import Operator, Scan
from headrace.relations.access_paths import AccessPath, AccessPaths
from headrace.relations.input_reader import MOST_BYTES
from headrace.relations.row_expressions import passing, values_of
from headrace.render import PlanInput
from headrace.render.inputs import input_name
from headrace.spark.run import Input
from headrace.store import WEIGHT, Keys, net_retracted

# Spark reads so many rows before a reduced input could be handed to it. What a change touches has
# new files each time, and opening these takes Spark longer than the driver compares their keys.
WORTH_ROWS = 500
# Up to the first number of keys are always looked up; up to the second, if the input has at least
# twice as many rows.
FEW_KEYS, MOST_KEYS = 20_000, 200_000


@dataclass(frozen=True)
class Reduced:
    """The inputs of a query, and the rows that each scan that was looked up is left with."""

    inputs: list[Input]
    found: Mapping[Path, pa.Table] = field(default_factory=dict)


def reduced(
    paths: AccessPaths,
    reduction: Reduction,
    plan_inputs: Sequence[PlanInput],
    inputs: Sequence[Input],
) -> Reduced:
    """Return the inputs, those of large states with fewer rows where that is worth it.

    A state of which every scan is restricted is looked up by the keys that reach it, unless these
    are too many. All others stay as they are.
    """
    if paths.requested == "whole":
        return Reduced(list(inputs))
    reading = paths.reading
    least = WORTH_ROWS if paths.requested == "auto" else 0
    inputs_by_name = {
        plan_input.name: input_ for plan_input, input_ in zip(plan_inputs, inputs, strict=True)
    }
    if any(inputs_by_name[_name(origin)].rows is None for origin in _first_origins(reduction)):
        return Reduced(list(inputs))
    worth = {
        plan_input.name
        for plan_input in plan_inputs
        if plan_input.version not in GIVEN
        and (plan_input.relation, plan_input.version) not in reduction.whole
        and reading.size(plan_input) > least
    }
    if not worth:
        return Reduced(list(inputs))
    taken = sum(input_.rows.nbytes for input_ in inputs if input_.rows is not None)
    search = _Search(
        paths,
        reduction,
        inputs_by_name,
        {plan_input.name: plan_input for plan_input in plan_inputs},
        _bytes=taken,
    )
    search.follow(_needed(reduction, worth))
    result: list[Input] = []
    for plan_input, input_ in zip(plan_inputs, inputs, strict=True):
        pieces = search.pieces.get(plan_input.name, [])
        if plan_input.name not in worth or plan_input.name in search.given_up:
            result.append(input_)
            continue
        rows = _together(pieces, input_.schema)
        keys, size = sum(len(piece.keys) for piece in pieces), reading.size(plan_input)
        # Where keys were looked up by several access paths, the last one is recorded.
        way = pieces[-1].way
        paths.taken.append(
            Access(plan_input.relation, plan_input.version, way, keys, rows.num_rows, size)
        )
        result.append(replace(input_, files=(), rows=rows))
    return Reduced(result, search.found)


def empty_scans(
    plan: Operator, reduction: Reduction, plan_inputs: Sequence[PlanInput], lookup: Reduced
) -> frozenset[Path]:
    """Return the paths of scans of which no row matters, as far as that is known."""
    inputs = {
        plan_input.name: rows for plan_input, rows in zip(plan_inputs, lookup.inputs, strict=True)
    }
    conditions = dict(reduction.conditions)
    empty: set[Path] = set()
    for path, scan in scans(plan):
        rows = inputs[input_name(scan.relation, scan.version)].rows
        rows = lookup.found.get(path, rows)
        if rows is not None and not passing(rows, scan, conditions.get(path, ())).num_rows:
            empty.add(path)
    return frozenset(empty)


def _first_origins(reduction: Reduction) -> Iterable[ScanOrigin]:
    """Return the origins of restrictions whose rows are given with the query."""
    for restriction in reduction.restrictions:
        yield from (origin for origin in restriction.origins if origin.scan.version in GIVEN)


def _name(of: ScanOrigin | Restriction) -> str:
    return input_name(of.scan.relation, of.scan.version)


def _needed(reduction: Reduction, worth: Iterable[str]) -> dict[Path, list[Restriction]]:
    """Return the restrictions that lead to these inputs, shortest or with conditions first.

    Conditions make keys few. All other scans are left out.
    """
    by_path: dict[Path, list[Restriction]] = {}
    for restriction in reduction.restrictions:
        by_path.setdefault(restriction.path, []).append(restriction)
    names, selective = set(worth), {path for path, _ in reduction.conditions}
    paths = {path for path, (restriction, *_) in by_path.items() if _name(restriction) in names}
    due = list(paths)
    while due:
        path = due.pop()
        shortest = min(by_path[path], key=lambda restriction: restriction.steps)
        new = {
            origin.path
            for restriction in by_path[path]
            for origin in restriction.origins
            if origin.path in by_path and (restriction is shortest or origin.path in selective)
        } - paths
        paths |= new
        due += new
    return {path: by_path[path] for path in paths}


@dataclass(frozen=True)
class _Piece:
    """The rows of an input with certain keys."""

    keys: Keys
    rows: pa.Table
    way: AccessPath


@dataclass
class _Search:
    """The rows that each restricted scan was left with so far, and the bytes of all inputs."""

    paths: AccessPaths
    reduction: Reduction
    given: dict[str, Input]
    wanted: dict[str, PlanInput]
    pieces: dict[str, list[_Piece]] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    _bytes: int = 0
    _found: dict[Path, tuple[Scan, pa.Table]] = field(default_factory=dict)
    _passed: dict[Path, pa.Table] = field(default_factory=dict)

    @property
    def found(self) -> dict[Path, pa.Table]:
        """The rows that each scan that was looked up is left with."""
        return {path: rows for path, (_, rows) in self._found.items()}

    @cached_property
    def _conditions(self) -> dict[Path, tuple[Scalar, ...]]:
        return dict(self.reduction.conditions)

    def follow(self, restrictions: dict[Path, list[Restriction]]) -> None:
        """Look up the rows of every scan by the fewest keys that are known when its turn comes.

        Small inputs come first: the rows that they are left with make the keys of large ones fewer.
        """
        pending = dict(restrictions)
        while ready := {path: usable for path in pending if (usable := self._ready(pending[path]))}:
            path = min(ready, key=lambda path: self._size(ready[path][0]))
            del pending[path]
            tables = [
                (keys, restriction)
                for restriction in ready[path]
                if (keys := self._keys(restriction)) is not None
            ]
            if not tables:
                self.given_up.add(_name(ready[path][0]))
                continue
            keys, best = min(tables, key=lambda pair: pair[0].num_rows)
            self._look_up(best, keys)
        self.given_up |= {_name(ways[0]) for ways in pending.values()}

    def _ready(self, ways: list[Restriction]) -> list[Restriction]:
        return [
            restriction for restriction in ways if all(map(self._is_known, restriction.origins))
        ]

    def _is_known(self, origin: ScanOrigin) -> bool:
        return origin.scan.version in GIVEN or origin.path in self._found

    def _size(self, restriction: Restriction) -> int:
        return self.paths.reading.size(self.wanted[_name(restriction)])

    def _look_up(self, restriction: Restriction, keys: pa.Table) -> None:
        name = _name(restriction)
        pieces = self.pieces.setdefault(name, [])
        piece = next((earlier for earlier in pieces if earlier.keys.are(keys)), None)
        if piece is None:
            piece = self._piece(name, keys)
            if piece is None:
                self.given_up.add(name)
                return
            pieces.append(piece)
        self._found[restriction.path] = restriction.scan, piece.rows

    def _piece(self, name: str, keys: pa.Table) -> _Piece | None:
        plan_input, reading = self.wanted[name], self.paths.reading
        if keys.num_rows > min(MOST_KEYS, max(FEW_KEYS, reading.size(plan_input) // 2)):
            return None
        rows, way = self.paths.find(plan_input, indexed := Keys(keys))
        self._bytes += rows.nbytes
        if rows.num_rows > reading.most_found(plan_input) or self._bytes > MOST_BYTES:
            self._bytes -= rows.nbytes
            return None
        return _Piece(indexed, net_retracted(rows), way)

    def _keys(self, restriction: Restriction) -> pa.Table | None:
        """Return the keys of a restriction; None if they take too long to compute."""
        tables: list[pa.Table] = []
        for origin in restriction.origins:
            values = self._origin(origin)
            if values is None:
                return None
            tables.append(values)
        return keys_table(
            tables,
            self._key_schema(self.wanted[_name(restriction)], restriction.columns),
            restriction,
        )

    def _origin(self, origin: ScanOrigin) -> pa.Table | None:
        """Return the values of an origin's rows; conditions are evaluated on no other rows."""
        path = origin.path
        if path not in self._passed:
            scan, rows = self._found.get(path, (origin.scan, self.given[_name(origin)].rows))
            assert rows is not None
            self._passed[path] = passing(rows, scan, self._conditions.get(path, ()))
        return values_of(self._passed[path], origin.scan, origin.values)

    def _key_schema(self, plan_input: PlanInput, columns: tuple[str, ...]) -> pa.Schema:
        types = dict(self.paths.reading.state.relation(plan_input.relation).columns)
        return pa.schema([(name, types[name].arrow) for name in columns])


def keys_table(tables: Sequence[pa.Table], schema: pa.Schema, restriction: Restriction) -> pa.Table:
    """Return the keys of the origins, each once, as values of the columns that are restricted."""
    keys = pa.concat_tables([schema.empty_table(), *(_fitted(table, schema) for table in tables)])
    if not restriction.null_safe:
        keys = keys.drop_null()
    elif restriction.padded:
        nulls = {field.name: pa.nulls(1, field.type) for field in schema}
        keys = pa.concat_tables([keys, pa.table(nulls, schema=schema)])
    return keys.group_by(schema.names, use_threads=False).aggregate([])


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows that have a value of the types; a whole number may be too large for one."""
    table = table.rename_columns(schema.names)
    for column in schema:
        if column.type == table.schema.field(column.name).type:
            continue
        value_type = table.schema.field(column.name).type
        if pa.types.is_integer(column.type) and column.type.bit_width < value_type.bit_width:
            bits = column.type.bit_width - 1
            values = table[column.name]
            fits = pc.and_(pc.greater_equal(values, -(1 << bits)), pc.less(values, 1 << bits))
            table = table.filter(pc.fill_null(fits, True))
    return table.cast(schema)


def _together(pieces: Sequence[_Piece], schema: pa.Schema) -> pa.Table:
    """Return all rows of the pieces, those that are in several of them once."""
    tables = [schema.empty_table()]
    for number, piece in enumerate(pieces):
        rows = piece.rows
        for earlier in pieces[:number]:
            rows = rows.filter(pc.invert(pa.array(earlier.keys.has(rows))))
        tables.append(rows.select([WEIGHT, *schema.names[1:]]).cast(schema))
    return pa.concat_tables(tables)
