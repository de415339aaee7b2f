"""A small ingest that keeps its sources as bags in memory: the reference for what capture gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from adbc_driver_postgresql import dbapi

from headrace.capture.changes import acknowledge, change_batches, pending
from headrace.capture.cut import OpenCut, open_cut
from headrace.capture.recopy_reasons import Captured, captured_part
from headrace.capture.setup import set_up
from headrace.source.connection import Database
from headrace.source.introspect import find_table, inspect
from headrace.source.reading import WEIGHT, read_sql, stored_schema, to_stored
from headrace.source.table import SourceTable

Bag = Counter[tuple[Any, ...]]


NEVER = 10**9


def read_changes(
    database: Database, source: Captured, after: str | None, upto: str, fold_from: int = NEVER
) -> pa.Table:
    """All that `change_batches` gives, in memory."""
    columns = [column for column in source.columns if column.type is not None]
    nothing = stored_schema(columns, weighted=True).empty_table()
    return pa.concat_tables([nothing, *change_batches(database, source, after, upto, fold_from)])


@dataclass(frozen=True)
class Tick:
    """What one cut did: rows read as changes, and sources copied with the reason."""

    skipped: bool = False
    changed: int = 0
    copied: dict[str, str] | None = None


class Follower:
    """Takes cuts of some tables and adds up what they give, as ingest does."""

    def __init__(
        self, database: Database, *names: str, schema: str = "public", **options: Any
    ) -> None:
        self.database = database
        self.options = options
        with database.session() as connection:
            tables = [find_table(connection, schema, name) for name in names]
        self.sources: dict[int, SourceTable] = {}
        self.bags: dict[int, Bag] = {}
        self.oids = {table.name: table.oid for table in tables}
        self.snapshot: str | None = None
        self.epoch = 0
        self.acknowledges_every = 1
        for table in tables:
            set_up(database, table, **options)
            self.sources[table.oid] = SourceTable(
                table.oid, table.schema, table.name, table.columns, table.keys
            )
            self.bags[table.oid] = Counter()

    def bag(self, name: str) -> Bag:
        return self.bags[self.oids[name]]

    def source(self, name: str) -> SourceTable:
        return self.sources[self.oids[name]]

    def tick(self) -> Tick:
        """One round: nothing if nothing is pending, else a cut, compared with the tables in it."""
        sources = list(self.sources.values())
        if self.snapshot is not None:
            with self.database.session() as connection:
                if not pending(connection, sources, self.snapshot):
                    return Tick(skipped=True)
        copies: frozenset[int] = frozenset()
        while True:
            self._mend(copies)
            with open_cut(self.database, sources, lock=copies, previous=self.snapshot) as cut:
                if frozenset(cut.recopy_reasons) <= copies:
                    return self._take(cut, copies)
                copies |= frozenset(cut.recopy_reasons)

    def _mend(self, copies: frozenset[int]) -> None:
        with self.database.session() as connection:
            tables = inspect(connection, copies)
        for oid, table in tables.items():
            set_up(self.database, captured_part(self.sources[oid], table), **self.options)

    def _take(self, cut: OpenCut, copies: frozenset[int]) -> Tick:
        changed = 0
        for oid, source in self.sources.items():
            if oid in copies:
                table = captured_part(source, cut.tables[oid])
                self.bags[oid] = bag_of(read_live(self.database, cut, table))
                self.sources[oid] = table
                continue
            changes = read_changes(self.database, source, self.snapshot, cut.cut.snapshot)
            changed += changes.num_rows
            self.bags[oid].update(bag_of(changes))
            self.bags[oid] = Counter({row: n for row, n in self.bags[oid].items() if n})
            live = bag_of(read_live(self.database, cut, source))
            assert self.bags[oid] == live, differences(self.bags[oid], live)
        cut.confirm()
        self.epoch += 1
        self.snapshot = cut.cut.snapshot
        if self.epoch % self.acknowledges_every == 0:
            acknowledge(self.database, self.sources, cut.cut.snapshot, self.epoch)
        reasons = {self.sources[oid].name: cut.recopy_reasons[oid] for oid in copies}
        return Tick(changed=changed, copied=reasons)


def read_live(database: Database, cut: OpenCut, table: SourceTable, parts: int = 3) -> pa.Table:
    """The table in the cut, read range by range on a connection of its own."""
    snapshot = cut.export()
    with (
        dbapi.connect(database.conninfo, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        pieces = []
        for part in cut.ranges(table, parts):
            cursor.execute(read_sql(part.relation, table.stored, part.where))
            pieces.append(to_stored(cursor.fetch_arrow_table(), table.stored))
        cursor.execute("COMMIT")
    return pa.concat_tables(pieces)


def bag_of(data: pa.Table) -> Bag:
    """Rows with the sum of their weights; NaN equals itself here."""
    weights = data[WEIGHT].to_pylist() if WEIGHT in data.column_names else [1] * data.num_rows
    names = [name for name in data.column_names if name != WEIGHT]
    columns = [[_comparable(value) for value in data[name].to_pylist()] for name in names]
    bag: Bag = Counter()
    for weight, *row in zip(weights, *columns, strict=True):
        bag[tuple(row)] += weight
    return bag


def differences(followed: Bag, live: Bag) -> str:
    rows = {row for row in followed.keys() | live.keys() if followed[row] != live[row]}
    return "; ".join(f"{row}: followed {followed[row]}, live {live[row]}" for row in list(rows)[:5])


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return "NaN"
    return tuple(value) if isinstance(value, list) else value
