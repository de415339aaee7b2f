"""The store on Delta tables, written by delta-rs and read by anyone."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from errno import ENOENT
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from deltalake.exceptions import DeltaError

from headrace.errors import HeadraceError, InternalError, NeedsReinit
from headrace.store.actions import bounds_of
from headrace.store.commit import Commits
from headrace.store.failure import behind, readable, require_after, require_rows, unavailable
from headrace.store.keys import Keys
from headrace.store.layout import (
    AS_THEY_COME,
    Arrangement,
    check_apart,
    check_columns,
    check_order,
    conform,
    kept_apart,
    least_weight,
    some_columns,
    weighted,
)
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, Pin, RelationLog
from headrace.store.lookup import By, LookupCost
from headrace.store.net import net
from headrace.store.parquet import WrittenParts, parts_in, write_part
from headrace.store.reader import Reader
from headrace.store.store import Store
from headrace.store.vacuum import (
    PARTS,
    ROWS,
    SCRATCH,
    clear_unpublished,
    clear_written,
    is_over,
    lost_files,
    unnamed_since,
    vacuum,
)

MEMORY_BYTES = 256 * 1024 * 1024
LOGS_KEPT = 4


class DeltaStore(Store):
    """Relations as Delta tables at `<root>/<relation id>/`; see `Store` for the contract.

    `root` is a folder or any URI that delta-rs takes with the given storage options. A log that
    was read or written here is remembered as a value, a few versions of each: a pin selects its
    version, so that commits of other processes can make an entry unused but never wrong.
    """

    def __init__(
        self,
        root: str | Path,
        storage_options: Mapping[str, str] | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._place = StoreLocation.of(root, storage_options)
        self._commits = Commits(self._place)
        self._logs: dict[str, tuple[RelationLog, ...]] = {}
        self._reader = Reader(self._place, memory_bytes)
        self._unnamed_since: dict[str, float] = {}

    @property
    def folder(self) -> Path | None:
        """Return the store's folder on this machine; None for an object store."""
        return Path(self._place.root) if self._place.local else None

    def create(
        self, relation: str, columns: pa.Schema, arrangement: Arrangement = AS_THEY_COME
    ) -> Pin:
        check_columns(columns)
        check_order(columns, arrangement.order)
        check_apart(columns, arrangement.apart)
        self.drop(relation)
        log = self._commits.create(relation, columns, arrangement)
        return Pin(self._remember(relation, log).version, 0)

    def arrangement(self, relation: str, pin: Pin) -> Arrangement:
        return self._log(relation, pin).arrangement

    def append(self, relation: str, pin: Pin, epoch: int, rows: pa.Table) -> Pin:
        return self.extend(relation, pin, epoch, (rows,)).at(epoch)

    def extend(self, relation: str, pin: Pin, epoch: int, tables: Iterable[pa.Table]) -> Pin:
        log = self._log(relation, pin)
        conformed = (conform(table, log.columns) for table in tables)
        rows = (part for table in conformed for part in kept_apart(table, log.arrangement))
        written = self._commit_rows(relation, pin, log, epoch, rows)
        return pin if written is log else Pin(written.version, epoch)

    def _commit_rows(
        self,
        relation: str,
        pin: Pin,
        log: RelationLog,
        epoch: int,
        tables: Iterable[pa.Table],
        replaced: tuple[LogFile, ...] = (),
    ) -> RelationLog:
        """Write each table as one file and commit the files, in place of `replaced` if given.

        Tables without rows write nothing; without files there is no commit. Replaced files leave a
        file even without rows: it records that their epochs cannot be read separately any more.
        """
        added: list[LogFile] = []
        first = replaced[0].first_epoch if replaced else epoch
        with self._discarding(relation, pin, (file.uri for file in added)):
            for rows in tables:
                if rows.num_rows or replaced:
                    if not replaced:
                        require_after(relation, pin, epoch)
                    self._commits.check(relation, pin)
                    uri = self._place.uri(relation, f"{ROWS}{epoch}-{uuid4().hex}.parquet")
                    with self._writing():
                        size = write_part(self._place.files, self._place.path(uri), rows, epoch)
                    least = least_weight(rows)
                    bounds = bounds_of(rows, log.arrangement.apart)
                    added.append(LogFile(uri, rows.num_rows, size, first, epoch, least, bounds))
                    written = rows
            if not added and not replaced:
                return log
            log = self._commits.commit(
                relation, pin, log, tuple(added), replaced, compaction=bool(replaced)
            )
            self._reader.forget(replaced)
        # Rows in several tables are too large to keep in memory.
        if len(added) == 1:
            self._reader.keep(added[0], written)
        return self._remember(relation, log)

    def compact(self, relation: str, pin: Pin, chosen: tuple[LogFile, ...]) -> Pin:
        log, epoch = self._log(relation, pin), chosen[-1].last_epoch
        parts = self._sum(relation, log, chosen)
        log = self._commit_rows(relation, pin, log, epoch, parts, replaced=chosen)
        return Pin(log.version, pin.epoch)

    def log(self, relation: str, pin: Pin) -> RelationLog:
        return self._log(relation, pin)

    def write_merged(
        self, relation: str, log: RelationLog, chosen: tuple[LogFile, ...], folder: str
    ) -> None:
        files, path = self._place.files, self._place.path(folder)
        parts = self._sum(relation, log, chosen)
        with self._writing():
            files.create_dir(path)
            for number, rows in enumerate(parts):
                write_part(files, f"{path}/part-{number}.parquet", rows, chosen[-1].last_epoch)

    def _sum(
        self, relation: str, log: RelationLog, chosen: tuple[LogFile, ...]
    ) -> Iterator[pa.Table]:
        """Yield the rows of some files, netted, as one table for each file to write."""
        pin = Pin(log.version, chosen[-1].last_epoch)
        tables = [self._reader.read(relation, pin, file, log.columns) for file in chosen]
        return kept_apart(net(pa.concat_tables(tables)), log.arrangement)

    def rows_in(self, log: RelationLog, epoch: int, folder: str) -> int:
        with self._writing():
            return sum(part.rows for part in parts_in(self._place, folder, log, epoch))

    def discard(self, folder: str) -> None:
        with suppress(OSError):
            self._place.files.delete_dir(self._place.path(folder))

    def replace(
        self,
        relation: str,
        pin: Pin,
        chosen: tuple[LogFile, ...],
        folder: str,
        rows: int | None = None,
    ) -> Pin:
        log = self._log(relation, pin)
        with self._discarding(relation, pin, (folder,)):
            with self._writing():
                parts = parts_in(self._place, folder, log, chosen[-1].last_epoch)
            require_rows(folder, sum(part.rows for part in parts), rows)
            if not parts:
                nothing = weighted(log.columns).empty_table()
                epoch = chosen[-1].last_epoch
                log = self._commit_rows(relation, pin, log, epoch, (nothing,), replaced=chosen)
                return Pin(log.version, pin.epoch)
            added = tuple(replace(part, first_epoch=chosen[0].first_epoch) for part in parts)
            log = self._commits.commit(relation, pin, log, added, chosen, compaction=True)
            self._reader.forget(chosen)
        return Pin(self._remember(relation, log).version, pin.epoch)

    def vacuum(self, relation: str, pin: Pin, older_than: timedelta) -> int:
        self._commits.check(relation, pin)
        named = self._paths(relation, self._log(relation, pin))
        self._unnamed_since.pop(relation, None)
        with self._writing():
            return vacuum(self._place, relation, named, older_than)

    def vacuum_is_due(self, relation: str, older_than: timedelta) -> bool:
        if relation not in self._unnamed_since:
            with self._writing():
                self._unnamed_since[relation] = unnamed_since(self._place, relation)
        return is_over(self._unnamed_since[relation], older_than)

    def new_folder(self, relation: str, epoch: int) -> str:
        return self._place.uri(relation, f"{PARTS}{epoch}-{uuid4().hex}")

    def new_scratch(self, relation: str) -> str:
        return self._place.uri(relation, f"{SCRATCH}{uuid4().hex}")

    def parts(self, folder: str, schema: pa.Schema) -> WrittenParts:
        return WrittenParts(self._place, folder, schema)

    def register(
        self, relation: str, pin: Pin, epoch: int, folder: str, rows: int | None = None
    ) -> Pin:
        log = self._log(relation, pin)
        with self._writing():
            parts = parts_in(self._place, folder, log, epoch)
        require_rows(folder, sum(part.rows for part in parts), rows)
        if not parts:
            return pin.at(epoch)
        require_after(relation, pin, epoch)
        log = self._commits.commit(relation, pin, log, added=parts)
        return Pin(self._remember(relation, log).version, epoch)

    def files(self, relation: str, pin: Pin, after: int, upto: int) -> tuple[LogFile, ...]:
        if upto > pin.epoch:
            raise InternalError("invariant", f"epoch {upto} of {relation} is beyond its pin {pin}")
        return readable(relation, self._log(relation, pin), after, upto)

    def read(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table:
        files = self.files(relation, pin, after, upto)
        columns = self._log(relation, pin).columns
        tables = [self._reader.read(relation, pin, file, columns) for file in files]
        return pa.concat_tables([weighted(columns).empty_table(), *tables])

    def cached(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table | None:
        log = self._remembered(relation, pin)
        if log is None or upto > pin.epoch:
            return None
        tables = [weighted(log.columns).empty_table()]
        for file in readable(relation, log, after, upto):
            recent = self._reader.kept(file)
            if recent is None:
                return None
            tables.append(recent)
        return pa.concat_tables(tables)

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
        schema = some_columns(self._log(relation, pin).columns, columns)
        tables = [weighted(schema).empty_table()]
        left = most
        for file in self.files(relation, pin, 0, pin.epoch if upto is None else upto):
            tables.append(self._reader.matching(relation, pin, file, keys, schema, left, by))
            if left is not None:
                left -= tables[-1].num_rows
                if left < 0:
                    break
        return pa.concat_tables(tables)

    def lookup_cost(
        self,
        relation: str,
        pin: Pin,
        keys: Keys,
        columns: Collection[str] | None = None,
        upto: int | None = None,
    ) -> LookupCost:
        files = self.files(relation, pin, 0, pin.epoch if upto is None else upto)
        schema = some_columns(self._log(relation, pin).columns, columns)
        return self._reader.lookup_cost(relation, pin, files, keys, schema)

    def rollback(self, relation: str, pin: Pin) -> Pin:
        newest = self._commits.newest(relation, pin)
        if newest.version < pin.version:
            raise behind(relation, pin, f"the log ends at version {newest.version}")
        if newest.version > pin.version and self._commits.is_compaction(relation, pin.version + 1):
            pin = Pin(pin.version + 1, pin.epoch)
        self._commits.require_whole(relation, pin, newest.version)
        unwanted = newest.beyond(pin.epoch)
        pinned_files = [file for file in newest.files if file not in unwanted]
        if damage := lost_files(self._place, pinned_files):
            raise behind(relation, pin, damage)
        if newest.version > pin.version:
            pinned = self._log(relation, pin)
            before = set(pinned.files).difference(pinned.beyond(pin.epoch))
            if differing := before ^ set(newest.files).difference(unwanted):
                changed = min(file.uri for file in differing)
                raise behind(relation, pin, f"{changed} was added or removed by another program")
        if unwanted:
            at = Pin(newest.version, pin.epoch)
            newest = self._commits.commit(relation, at, newest, removed=unwanted)
            self._reader.forget(unwanted)
        with self._writing():
            clear_unpublished(self._place, relation, self._paths(relation, newest), pin.epoch)
        return Pin(self._remember(relation, newest).version, pin.epoch)

    def damage(self, relation: str, pin: Pin) -> str | None:
        self._logs.pop(relation, None)
        self._reader.forget_all(self._place.uri(relation) + "/")
        try:
            newest = self._commits.newest(relation, pin)
            self._commits.require_whole(relation, pin, newest.version)
            log = self._log(relation, pin)
            if damage := lost_files(self._place, log.files):
                return damage
            for file in log.files:
                self._reader.read(relation, pin, file, log.columns)
                self._reader.forget_all(file.uri)
        except NeedsReinit as error:
            return error.detail or error.message
        return None

    def prepare(self) -> None:
        with self._writing():
            self._place.prepare()

    def require_writable(self) -> None:
        number = self._place.trouble(writing=True)
        # A store has no folder before its first write.
        if number not in (None, ENOENT):
            error = OSError(number, os.strerror(number))
            raise unavailable(error, self._place, writing=True)

    def drop(self, relation: str) -> None:
        self._commits.forget(relation)
        self._logs.pop(relation, None)
        self._unnamed_since.pop(relation, None)
        self._reader.forget_all(self._place.uri(relation) + "/")
        with self._writing():
            self._place.remove(relation)

    def _log(self, relation: str, pin: Pin) -> RelationLog:
        """Return the log at the pin, from memory or from the Delta log."""
        log = self._remembered(relation, pin) or self._commits.at(relation, pin)
        return self._remember(relation, log)

    def _remembered(self, relation: str, pin: Pin) -> RelationLog | None:
        for log in self._logs.get(relation, ()):
            if log.version == pin.version:
                return log
        return None

    def _remember(self, relation: str, log: RelationLog) -> RelationLog:
        others = [
            remembered
            for remembered in self._logs.get(relation, ())
            if remembered.version != log.version
        ]
        self._logs[relation] = (*others[1 - LOGS_KEPT :], log)
        return log

    def _paths(self, relation: str, log: RelationLog) -> list[str]:
        return [self._place.path_in(relation, file.uri) for file in log.files]

    @contextmanager
    def _discarding(self, relation: str, pin: Pin, written: Iterable[str]) -> Iterator[None]:
        """Remove what was written after any failure, unless the commit landed before it failed.

        In doubt files are kept, for `rollback` or a vacuum to remove.
        """
        try:
            yield
        except BaseException:
            with suppress(HeadraceError):
                named = self._paths(relation, self._commits.newest(relation, pin))
                paths = [self._place.path_in(relation, uri) for uri in written]
                clear_written(self._place, relation, named, paths)
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, DeltaError, pa.ArrowException) as error:
            raise unavailable(error, self._place, writing=True) from error
