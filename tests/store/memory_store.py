"""The store's fake: the same contract in memory, for tests without a disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count

import pyarrow as pa

from headrace.errors import InternalError, NeedsReinit
from headrace.store.failure import behind, lease_lost, readable, require_after, require_rows
from headrace.store.keys import Keys
from headrace.store.layout import (
    AS_THEY_COME,
    Arrangement,
    check_apart,
    check_columns,
    check_order,
    columns_of,
    conform,
    least_weight,
    some_columns,
    weighted,
)
from headrace.store.log import LogFile, Pin, RelationLog
from headrace.store.lookup import By, LookupCost
from headrace.store.net import net
from headrace.store.store import Store


@dataclass(frozen=True)
class MemoryLog:
    """Every version of a relation's log, and the rows of every file."""

    versions: tuple[RelationLog, ...]
    rows: Mapping[str, pa.Table]


class MemoryStore(Store):
    """Relations in memory; `write` plays the executors. See `Store` for the contract."""

    def __init__(self) -> None:
        self._relations: dict[str, MemoryLog] = {}
        self._folders: dict[str, list[pa.Table]] = {}
        self._numbers = count(1)

    def create(
        self, relation: str, columns: pa.Schema, arrangement: Arrangement = AS_THEY_COME
    ) -> Pin:
        check_columns(columns)
        check_order(columns, arrangement.order)
        check_apart(columns, arrangement.apart)
        self._relations[relation] = MemoryLog(
            (RelationLog(0, columns_of(columns), (), arrangement),), {}
        )
        return Pin(0, 0)

    def arrangement(self, relation: str, pin: Pin) -> Arrangement:
        return self._at(relation, pin).arrangement

    def append(self, relation: str, pin: Pin, epoch: int, rows: pa.Table) -> Pin:
        return self._add(relation, pin, epoch, [rows]).at(epoch)

    def extend(self, relation: str, pin: Pin, epoch: int, tables: Iterable[pa.Table]) -> Pin:
        return self._add(relation, pin, epoch, list(tables))

    def new_folder(self, relation: str, epoch: int) -> str:
        return f"memory:{relation}/parts-{epoch}-{next(self._numbers)}"

    def write(self, folder: str, rows: pa.Table) -> None:
        """Put one part of weighted rows into a folder."""
        self._folders.setdefault(folder, []).append(rows)

    def register(
        self, relation: str, pin: Pin, epoch: int, folder: str, rows: int | None = None
    ) -> Pin:
        parts = self._folders.get(folder, [])
        require_rows(folder, sum(part.num_rows for part in parts), rows)
        return self._add(relation, pin, epoch, parts).at(epoch)

    def new_scratch(self, relation: str) -> str:
        return f"memory:{relation}/scratch-{next(self._numbers)}"

    def parts(self, folder: str, schema: pa.Schema) -> pa.Table:
        return pa.concat_tables([schema.empty_table(), *self._folders.get(folder, [])])

    def files(self, relation: str, pin: Pin, after: int, upto: int) -> tuple[LogFile, ...]:
        if upto > pin.epoch:
            raise InternalError("invariant", f"epoch {upto} of {relation} is beyond its pin {pin}")
        return readable(relation, self._at(relation, pin), after, upto)

    def read(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table:
        found = self.files(relation, pin, after, upto)
        rows = self._relations[relation].rows
        columns = self._at(relation, pin).columns
        return pa.concat_tables(
            [weighted(columns).empty_table(), *(rows[file.uri] for file in found)]
        )

    def cached(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table | None:
        return self.read(relation, pin, after, upto)

    def lookup(
        self,
        relation: str,
        pin: Pin,
        keys: Keys,
        columns: Collection[str] | None = None,
        upto: int | None = None,
        most: int | None = None,
        *,
        by: By = "best",
    ) -> pa.Table:
        rows = keys.matching(self.read(relation, pin, 0, pin.epoch if upto is None else upto))
        return rows.select(weighted(some_columns(columns_of(rows.schema), columns)).names)

    def lookup_cost(
        self,
        relation: str,
        pin: Pin,
        keys: Keys,
        columns: Collection[str] | None = None,
        upto: int | None = None,
    ) -> LookupCost:
        """All rows: nothing is left out of what is in memory."""
        found = self.files(relation, pin, 0, pin.epoch if upto is None else upto)
        return LookupCost(sum(file.rows for file in found))

    def compact(self, relation: str, pin: Pin, chosen: tuple[LogFile, ...]) -> Pin:
        rows = net(pa.concat_tables([self._relations[relation].rows[f.uri] for f in chosen]))
        return self._replace(relation, pin, chosen, [rows])

    def log(self, relation: str, pin: Pin) -> RelationLog:
        return self._at(relation, pin)

    def write_merged(
        self, relation: str, log: RelationLog, chosen: tuple[LogFile, ...], folder: str
    ) -> None:
        rows = [self._relations[relation].rows[file.uri] for file in chosen]
        self.write(folder, net(pa.concat_tables(rows)))

    def rows_in(self, log: RelationLog, epoch: int, folder: str) -> int:
        return sum(part.num_rows for part in self._folders[folder])

    def discard(self, folder: str) -> None:
        self._folders.pop(folder, None)

    def replace(
        self,
        relation: str,
        pin: Pin,
        chosen: tuple[LogFile, ...],
        folder: str,
        rows: int | None = None,
    ) -> Pin:
        parts = self._folders.get(folder, [])
        require_rows(folder, sum(part.num_rows for part in parts), rows)
        return self._replace(relation, pin, chosen, parts)

    def vacuum(self, relation: str, pin: Pin, older_than: timedelta) -> int:
        """Nothing says when rows were replaced: a fake keeps them, or with no time none."""
        was = self._relations[relation]
        named = {file.uri for file in self._at(relation, pin).files}
        due = was.rows.keys() - named if not older_than else frozenset()
        kept = {uri: rows for uri, rows in was.rows.items() if uri not in due}
        self._relations[relation] = replace(was, rows=kept)
        return len(due)

    def vacuum_is_due(self, relation: str, older_than: timedelta) -> bool:
        """It notes nothing."""
        return False

    def rollback(self, relation: str, pin: Pin) -> Pin:
        self._at(relation, pin)
        newest = self._relations[relation].versions[-1]
        if unwanted := newest.beyond(pin.epoch):
            newest = self._commit(relation, newest.after_commit((), unwanted), {})
        return Pin(newest.version, pin.epoch)

    def damage(self, relation: str, pin: Pin) -> str | None:
        try:
            self._at(relation, pin)
        except NeedsReinit as error:
            return error.detail
        return None

    def prepare(self) -> None:
        """Memory is there."""

    def require_writable(self) -> None:
        """Memory always is."""

    def drop(self, relation: str) -> None:
        self._relations.pop(relation, None)

    def _at(self, relation: str, pin: Pin) -> RelationLog:
        versions = self._relations[relation].versions if relation in self._relations else ()
        if pin.version >= len(versions):
            raise behind(relation, pin, f"the log has {len(versions)} versions")
        return versions[pin.version]

    def _add(self, relation: str, pin: Pin, epoch: int, tables: list[pa.Table]) -> Pin:
        log = self._at(relation, pin)
        rows = {
            f"memory:{relation}/{next(self._numbers)}": conform(table, log.columns)
            for table in tables
            if table.num_rows
        }
        if not rows:
            return pin
        require_after(relation, pin, epoch)
        if log != self._relations[relation].versions[-1]:
            raise lease_lost(relation, pin)
        added = tuple(
            LogFile(uri, table.num_rows, table.nbytes, epoch, epoch, least_weight(table))
            for uri, table in rows.items()
        )
        return Pin(self._commit(relation, log.after_commit(added, ()), rows).version, epoch)

    def _replace(
        self, relation: str, pin: Pin, chosen: tuple[LogFile, ...], tables: list[pa.Table]
    ) -> Pin:
        log = self._at(relation, pin)
        if log != self._relations[relation].versions[-1]:
            raise lease_lost(relation, pin)
        first, last = chosen[0].first_epoch, chosen[-1].last_epoch
        # A sum without rows is a file all the same: nothing distinguishes its epochs any more.
        nothing = weighted(log.columns).empty_table()
        parts = [table for table in tables if table.num_rows] or [nothing]
        rows = {f"memory:{relation}/{next(self._numbers)}": table for table in parts}
        added = tuple(
            LogFile(uri, table.num_rows, table.nbytes, first, last, least_weight(table))
            for uri, table in rows.items()
        )
        compacted = self._commit(relation, log.after_commit(added, chosen), rows)
        return Pin(compacted.version, pin.epoch)

    def _commit(self, relation: str, log: RelationLog, rows: Mapping[str, pa.Table]) -> RelationLog:
        was = self._relations[relation]
        self._relations[relation] = replace(
            was, versions=(*was.versions, log), rows={**was.rows, **rows}
        )
        return log
