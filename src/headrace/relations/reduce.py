"""Inputs of a delta query reduced to the rows that reach the change, before Spark reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.records import Access
from headrace.delta.reduction import GIVEN, Origin, Path, Reduction, Restriction
from headrace.relations.access import Way, Ways
from headrace.render import PlanInput
from headrace.render.inputs import input_name
from headrace.spark.run import Input
from headrace.store import WEIGHT, Keys

# Spark reads so many rows before a reduced input could be handed to it.
WORTH_ROWS = 20_000
MOST_KEYS = 200_000


def reduced(
    ways: Ways, reduction: Reduction, wanted: Sequence[PlanInput], inputs: Sequence[Input]
) -> list[Input]:
    """The inputs, those of large states with fewer rows where that is worth it.

    A state of which every scan is restricted is looked up by the keys that reach it, unless these
    are too many. All others stay as they are.
    """
    if ways.wish == "whole":
        return list(inputs)
    reading = ways.reading
    least = WORTH_ROWS if ways.wish == "auto" else 0
    given = {plan.name: one for plan, one in zip(wanted, inputs, strict=True)}
    if any(given[_name(origin)].rows is None for origin in _first_origins(reduction)):
        return list(inputs)
    worth = {
        plan.name
        for plan in wanted
        if plan.version not in GIVEN
        and (plan.relation, plan.version) not in reduction.whole
        and reading.size(plan) > least
    }
    if not worth:
        return list(inputs)
    search = _Search(ways, given, {plan.name: plan for plan in wanted})
    for restriction in _needed(reduction.restrictions, worth):
        search.follow(restriction)
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
    return result


def _first_origins(reduction: Reduction) -> Iterable[Origin]:
    """What the ways begin at."""
    for one in reduction.restrictions:
        yield from (origin for origin in one.origins if origin.scan.version in GIVEN)


def _name(of: Origin | Restriction) -> str:
    return input_name(of.scan.relation, of.scan.version)


def _needed(restrictions: tuple[Restriction, ...], worth: Iterable[str]) -> tuple[Restriction, ...]:
    """The restrictions of these inputs, and those on the way to them."""
    names, paths = set(worth), set[Path]()
    for one in reversed(restrictions):
        if _name(one) in names or one.path in paths:
            paths |= {one.path, *(origin.path for origin in one.origins)}
    return tuple(one for one in restrictions if one.path in paths)


@dataclass(frozen=True)
class _Piece:
    """The rows of an input with certain keys."""

    keys: Keys
    rows: pa.Table
    way: Way


@dataclass
class _Search:
    """The rows that each restricted scan was left with so far."""

    ways: Ways
    given: dict[str, Input]
    wanted: dict[str, PlanInput]
    pieces: dict[str, list[_Piece]] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    _rows: dict[Path, pa.Table] = field(default_factory=dict)
    _known: dict[tuple[object, ...], _Piece] = field(default_factory=dict)

    def follow(self, one: Restriction) -> None:
        """Look up the rows of a scan by the keys of its origins, if these are known and few."""
        name = _name(one)
        same = (name, one.columns, one.origins, one.null_safe, one.padded)
        if same not in self._known:
            piece = self._found(one, name)
            if piece is None:
                self.given_up.add(name)
                return
            self._known[same] = piece
            self.pieces.setdefault(name, []).append(piece)
        self._rows[one.path] = self._known[same].rows

    def _found(self, one: Restriction, name: str) -> _Piece | None:
        tables = [self._origin(origin) for origin in one.origins]
        known = [table for table in tables if table is not None]
        if len(known) < len(tables):
            return None
        wanted = self.wanted[name]
        rows = keys_table(known, self._key_schema(wanted, one.columns), one)
        if rows.num_rows > min(MOST_KEYS, max(WORTH_ROWS, self.ways.reading.size(wanted) // 2)):
            return None
        keys = Keys(rows)
        found, way = self.ways.find(wanted, keys)
        return None if found.num_rows > self.ways.reading.limit else _Piece(keys, found, way)

    def _origin(self, origin: Origin) -> pa.Table | None:
        given = origin.scan.version in GIVEN
        rows = self.given[_name(origin)].rows if given else self._rows.get(origin.path)
        return None if rows is None else rows.select(origin.columns)

    def _key_schema(self, wanted: PlanInput, columns: tuple[str, ...]) -> pa.Schema:
        types = dict(self.ways.reading.state.relation(wanted.relation).columns)
        return pa.schema([(name, types[name].arrow) for name in columns])


def keys_table(tables: Sequence[pa.Table], schema: pa.Schema, one: Restriction) -> pa.Table:
    """The keys of the origins, each once, as values of the columns that are restricted."""
    keys = pa.concat_tables([_fitted(table, schema) for table in tables])
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
        if pa.types.is_integer(column.type):
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
