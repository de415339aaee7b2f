"""The store on Delta tables, written by delta-rs and read by anyone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from deltalake.exceptions import DeltaError

from headrace.errors import InternalError, Unavailable
from headrace.store.commit import Commits
from headrace.store.compaction import worth_merging
from headrace.store.failure import behind, unavailable
from headrace.store.layout import check_columns, conform, weighted
from headrace.store.log import Log, LogFile, Pin
from headrace.store.net import net
from headrace.store.part import discard, parts_in, read_part, write_part
from headrace.store.place import Place
from headrace.store.recent import Recent
from headrace.store.store import Store

MEMORY_BYTES = 256 * 1024 * 1024
LOGS_KEPT = 4


class DeltaStore(Store):
    """Relations as Delta tables at `<root>/<relation id>/`; see `Store` for the contract.

    `root` is a folder or any URI that delta-rs takes with the given storage options. A log that
    was read or written here once is remembered as a value, a few versions of each: a pin picks
    its version, so that what other processes commit can make it unused but never wrong.
    """

    def __init__(
        self,
        root: str | Path,
        storage_options: Mapping[str, str] | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._place = Place.of(root, storage_options)
        self._commits = Commits(self._place)
        self._logs: dict[str, tuple[Log, ...]] = {}
        self._recent = Recent(memory_bytes)

    def create(self, relation: str, columns: pa.Schema) -> Pin:
        check_columns(columns)
        self.drop(relation)
        return Pin(self._remember(relation, self._commits.create(relation, columns)).version, 0)

    def append(self, relation: str, pin: Pin, epoch: int, rows: pa.Table) -> Pin:
        log = self._next(relation, pin, epoch)
        rows = conform(rows, log.columns)
        if not rows.num_rows:
            return Pin(pin.version, epoch)
        log = self._commit_rows(relation, pin, log, epoch, rows)
        return Pin(log.version, epoch)

    def _commit_rows(
        self,
        relation: str,
        pin: Pin,
        log: Log,
        epoch: int,
        rows: pa.Table,
        replaced: tuple[LogFile, ...] = (),
    ) -> Log:
        """Write rows as one file and commit it, in the place of other files if any are given."""
        self._commits.check(relation, pin)
        uri = self._place.uri(relation, f"rows-{epoch}-{uuid4().hex}.parquet")
        with self._writing():
            size = write_part(self._place.files, self._place.path(uri), rows, epoch)
        added = (LogFile(uri, rows.num_rows, size, epoch, epoch),) if rows.num_rows else ()
        try:
            log = self._commits.commit(
                relation, pin, log, added, replaced, compaction=bool(replaced)
            )
        except Unavailable as error:
            if error.code == "lease-lost":
                discard(self._place.files, self._place.path(uri))
            raise
        self._recent.put(uri, rows)
        return self._remember(relation, log)

    def compact(self, relation: str, pin: Pin, since: int) -> Pin:
        log = self._log(relation, pin)
        chosen = worth_merging(log.files, min(since, pin.epoch))
        if not chosen:
            return pin
        first, last = chosen[0].first_epoch, chosen[-1].last_epoch
        tables = [
            self._read_part(relation, pin, file, log.columns, first - 1, last) for file in chosen
        ]
        rows = net(pa.concat_tables(tables))
        log = self._commit_rows(relation, pin, log, last, rows, replaced=chosen)
        return Pin(log.version, pin.epoch)

    def new_folder(self, relation: str, epoch: int) -> str:
        return self._place.uri(relation, f"parts-{epoch}-{uuid4().hex}")

    def register(
        self, relation: str, pin: Pin, epoch: int, folder: str, rows: int | None = None
    ) -> Pin:
        log = self._next(relation, pin, epoch)
        with self._writing():
            parts = parts_in(self._place, folder, log.columns, epoch)
        counted = sum(part.rows for part in parts)
        if rows is not None and rows != counted:
            raise InternalError(
                "invariant",
                f"{folder} holds {counted} rows, not the {rows} that were written",
                hint="The store must be a location that the driver and all executors share.",
            )
        if not parts:
            return Pin(pin.version, epoch)
        log = self._commits.commit(relation, pin, log, added=parts)
        return Pin(self._remember(relation, log).version, epoch)

    def files(self, relation: str, pin: Pin, after: int, upto: int) -> tuple[LogFile, ...]:
        if upto > pin.epoch:
            raise InternalError("invariant", f"epoch {upto} of {relation} is beyond its pin {pin}")
        return self._log(relation, pin).between(after, upto)

    def read(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table:
        found = self.files(relation, pin, after, upto)
        columns = self._log(relation, pin).columns
        tables = [self._read_part(relation, pin, file, columns, after, upto) for file in found]
        return pa.concat_tables([weighted(columns).empty_table(), *tables])

    def cached(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table | None:
        log = self._known(relation, pin)
        if log is None or upto > pin.epoch:
            return None
        tables = [weighted(log.columns).empty_table()]
        for file in log.between(after, upto):
            recent = self._recent.get(file.uri) if file.inside(after, upto) else None
            if recent is None:
                return None
            tables.append(recent)
        return pa.concat_tables(tables)

    def rollback(self, relation: str, pin: Pin) -> Pin:
        newest = self._commits.newest(relation, pin)
        if newest.version < pin.version:
            raise behind(relation, pin, f"the log ends at version {newest.version}")
        if newest.version > pin.version and self._commits.is_compaction(relation, pin.version + 1):
            pin = Pin(pin.version + 1, pin.epoch)
        unwanted = newest.beyond(pin.epoch)
        if newest.version > pin.version:
            pinned = self._log(relation, pin)
            before = set(pinned.files).difference(pinned.beyond(pin.epoch))
            if differing := before ^ set(newest.files).difference(unwanted):
                changed = min(file.uri for file in differing)
                raise behind(relation, pin, f"{changed} was added or removed by someone else")
        if unwanted:
            at = Pin(newest.version, pin.epoch)
            newest = self._commits.commit(relation, at, newest, removed=unwanted)
        return Pin(self._remember(relation, newest).version, pin.epoch)

    def drop(self, relation: str) -> None:
        self._commits.forget(relation)
        self._logs.pop(relation, None)
        self._recent.forget(self._place.uri(relation) + "/")
        with self._writing():
            self._place.remove(relation)

    def _next(self, relation: str, pin: Pin, epoch: int) -> Log:
        """The log that a write of `epoch` builds on."""
        if epoch <= pin.epoch:
            raise InternalError("invariant", f"epoch {epoch} of {relation} is not after {pin}")
        return self._log(relation, pin)

    def _log(self, relation: str, pin: Pin) -> Log:
        """The log at the pin, from memory or from the Delta log."""
        log = self._known(relation, pin) or self._commits.at(relation, pin)
        return self._remember(relation, log)

    def _known(self, relation: str, pin: Pin) -> Log | None:
        for log in self._logs.get(relation, ()):
            if log.version == pin.version:
                return log
        return None

    def _remember(self, relation: str, log: Log) -> Log:
        others = [kept for kept in self._logs.get(relation, ()) if kept.version != log.version]
        self._logs[relation] = (*others[1 - LOGS_KEPT :], log)
        return log

    def _read_part(
        self, relation: str, pin: Pin, file: LogFile, columns: pa.Schema, after: int, upto: int
    ) -> pa.Table:
        whole = file.inside(after, upto)
        recent = self._recent.get(file.uri) if whole else None
        if recent is not None:
            return recent
        files, path = self._place.files, self._place.path(file.uri)
        try:
            return read_part(files, path, columns, None if whole else (after, upto))
        except (OSError, pa.ArrowException) as error:
            missing = isinstance(error, FileNotFoundError)
            if missing or (self._place.local and self._place.trouble(writing=False) is None):
                raise behind(relation, pin, f"{file.uri} cannot be read") from error
            raise unavailable(error, self._place, writing=False) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, DeltaError, pa.ArrowException) as error:
            raise unavailable(error, self._place, writing=True) from error
