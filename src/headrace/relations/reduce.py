"""Inputs of a delta query reduced to the rows that reach the change, before Spark reads them."""

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
# Up to so many keys are looked up, however many of the rows that may be; beyond, if they are few.
FEW_KEYS, MOST_KEYS = 20_000, 200_000


@dataclass(frozen=True)
class Reduced:
    """The inputs of a query, and of scans that were looked up the rows that each is left with."""

    inputs: list[Input]
    found: Mapping[Path, pa.Table] = field(default_factory=dict)


def reduced(
    ways: AccessPaths, reduction: Reduction, wanted: Sequence[PlanInput], inputs: Sequence[Input]
) -> Reduced:
    """The inputs, those of large states with fewer rows where that is worth it.

    A state of which every scan is restricted is looked up by the keys that reach it, unless these
    are too many. All others stay as they are.
    """
    if ways.wish == "whole":
        return Reduced(list(inputs))
    reading = ways.reading
    least = WORTH_ROWS if ways.wish == "auto" else 0
    given = {plan.name: one for plan, one in zip(wanted, inputs, strict=True)}
    if any(given[_name(origin)].rows is None for origin in _first_origins(reduction)):
        return Reduced(list(inputs))
    worth = {
        plan.name
        for plan in wanted
        if plan.version not in GIVEN
        and (plan.relation, plan.version) not in reduction.whole
        and reading.size(plan) > least
    }
    if not worth:
        return Reduced(list(inputs))
    taken = sum(one.rows.nbytes for one in inputs if one.rows is not None)
    search = _Search(ways, reduction, given, {plan.name: plan for plan in wanted}, _bytes=taken)
    search.follow(_needed(reduction, worth))
    result: list[Input] = []
    for plan, one in zip(wanted, inputs, strict=True):
        pieces = search.pieces.get(plan.name, [])
        if plan.name not in worth or plan.name in search.given_up:
            result.append(one)
            continue
        rows = _together(pieces, one.schema)
        keys, size = sum(len(piece.keys) for piece in pieces), reading.size(plan)
        # Where some keys were looked up one way and some another, the last one is told.
        way = pieces[-1].way
        ways.taken.append(Access(plan.relation, plan.version, way, keys, rows.num_rows, size))
        result.append(replace(one, files=(), rows=rows))
    return Reduced(result, search.found)


def empty_scans(
    plan: Operator, reduction: Reduction, wanted: Sequence[PlanInput], given: Reduced
) -> frozenset[Path]:
    """Where the plan scans something of which no row matters, as far as that is known."""
    inputs = {one.name: rows for one, rows in zip(wanted, given.inputs, strict=True)}
    conditions = dict(reduction.conditions)
    empty: set[Path] = set()
    for path, scan in scans(plan):
        rows = inputs[input_name(scan.relation, scan.version)].rows
        rows = given.found.get(path, rows)
        if rows is not None and not passing(rows, scan, conditions.get(path, ())).num_rows:
            empty.add(path)
    return frozenset(empty)


def _first_origins(reduction: Reduction) -> Iterable[ScanOrigin]:
    """What the ways begin at."""
    for one in reduction.restrictions:
        yield from (origin for origin in one.origins if origin.scan.version in GIVEN)


def _name(of: ScanOrigin | Restriction) -> str:
    return input_name(of.scan.relation, of.scan.version)


def _needed(reduction: Reduction, worth: Iterable[str]) -> dict[Path, list[Restriction]]:
    """The ways to these inputs, and to what stands on them: on the shortest, or with conditions.

    Conditions make keys few. All other scans are left out.
    """
    ways: dict[Path, list[Restriction]] = {}
    for one in reduction.restrictions:
        ways.setdefault(one.path, []).append(one)
    names, selective = set(worth), {path for path, _ in reduction.conditions}
    paths = {path for path, (one, *_) in ways.items() if _name(one) in names}
    due = list(paths)
    while due:
        path = due.pop()
        shortest = min(ways[path], key=lambda one: one.steps)
        new = {
            origin.path
            for one in ways[path]
            for origin in one.origins
            if origin.path in ways and (one is shortest or origin.path in selective)
        } - paths
        paths |= new
        due += new
    return {path: ways[path] for path in paths}


@dataclass(frozen=True)
class _Piece:
    """The rows of an input with certain keys."""

    keys: Keys
    rows: pa.Table
    way: AccessPath


@dataclass
class _Search:
    """The rows that each restricted scan was left with so far, and the bytes of all inputs."""

    ways: AccessPaths
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

        Small inputs come first: what they leave makes the keys of large ones fewer.
        """
        pending = dict(restrictions)
        while ready := {path: known for path in pending if (known := self._ready(pending[path]))}:
            path = min(ready, key=lambda path: self._size(ready[path][0]))
            del pending[path]
            tables = [(keys, one) for one in ready[path] if (keys := self._keys(one)) is not None]
            if not tables:
                self.given_up.add(_name(ready[path][0]))
                continue
            keys, best = min(tables, key=lambda pair: pair[0].num_rows)
            self._look_up(best, keys)
        self.given_up |= {_name(ways[0]) for ways in pending.values()}

    def _ready(self, ways: list[Restriction]) -> list[Restriction]:
        return [one for one in ways if all(map(self._is_known, one.origins))]

    def _is_known(self, origin: ScanOrigin) -> bool:
        return origin.scan.version in GIVEN or origin.path in self._found

    def _size(self, one: Restriction) -> int:
        return self.ways.reading.size(self.wanted[_name(one)])

    def _look_up(self, one: Restriction, keys: pa.Table) -> None:
        name = _name(one)
        pieces = self.pieces.setdefault(name, [])
        piece = next((known for known in pieces if known.keys.are(keys)), None)
        if piece is None:
            piece = self._piece(name, keys)
            if piece is None:
                self.given_up.add(name)
                return
            pieces.append(piece)
        self._found[one.path] = one.scan, piece.rows

    def _piece(self, name: str, keys: pa.Table) -> _Piece | None:
        wanted, reading = self.wanted[name], self.ways.reading
        if keys.num_rows > min(MOST_KEYS, max(FEW_KEYS, reading.size(wanted) // 2)):
            return None
        found, way = self.ways.find(wanted, indexed := Keys(keys))
        self._bytes += found.nbytes
        if found.num_rows > reading.most_found(wanted) or self._bytes > MOST_BYTES:
            self._bytes -= found.nbytes
            return None
        return _Piece(indexed, net_retracted(found), way)

    def _keys(self, one: Restriction) -> pa.Table | None:
        """The keys that a way leads to; None if they are too dear to be computed."""
        tables: list[pa.Table] = []
        for origin in one.origins:
            values = self._origin(origin)
            if values is None:
                return None
            tables.append(values)
        return keys_table(tables, self._key_schema(self.wanted[_name(one)], one.columns), one)

    def _origin(self, origin: ScanOrigin) -> pa.Table | None:
        """The values of the rows that a way begins at; conditions are tried on no others."""
        path = origin.path
        if path not in self._passed:
            scan, rows = self._found.get(path, (origin.scan, self.given[_name(origin)].rows))
            assert rows is not None
            self._passed[path] = passing(rows, scan, self._conditions.get(path, ()))
        return values_of(self._passed[path], origin.scan, origin.values)

    def _key_schema(self, wanted: PlanInput, columns: tuple[str, ...]) -> pa.Schema:
        types = dict(self.ways.reading.state.relation(wanted.relation).columns)
        return pa.schema([(name, types[name].arrow) for name in columns])


def keys_table(tables: Sequence[pa.Table], schema: pa.Schema, one: Restriction) -> pa.Table:
    """The keys of the origins, each once, as values of the columns that are restricted."""
    keys = pa.concat_tables([schema.empty_table(), *(_fitted(table, schema) for table in tables)])
    if not one.null_safe:
        keys = keys.drop_null()
    elif one.padded:
        nulls = {field.name: pa.nulls(1, field.type) for field in schema}
        keys = pa.concat_tables([keys, pa.table(nulls, schema=schema)])
    return keys.group_by(schema.names, use_threads=False).aggregate([])


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows that have a value of the types; a whole number may be too large for one."""
    table = table.rename_columns(schema.names)
    for column in schema:
        if column.type == table.schema.field(column.name).type:
            continue
        given = table.schema.field(column.name).type
        if pa.types.is_integer(column.type) and column.type.bit_width < given.bit_width:
            bits = column.type.bit_width - 1
            values = table[column.name]
            fits = pc.and_(pc.greater_equal(values, -(1 << bits)), pc.less(values, 1 << bits))
            table = table.filter(pc.fill_null(fits, True))
    return table.cast(schema)


def _together(pieces: Sequence[_Piece], schema: pa.Schema) -> pa.Table:
    """All rows of the pieces, those that are in several of them once."""
    tables = [schema.empty_table()]
    for number, piece in enumerate(pieces):
        rows = piece.rows
        for earlier in pieces[:number]:
            rows = rows.filter(pc.invert(pa.array(earlier.keys.has(rows))))
        tables.append(rows.select([WEIGHT, *schema.names[1:]]).cast(schema))
    return pa.concat_tables(tables)
