"""The protocol between the engine and the place where relations are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Protocol

import pyarrow as pa

from headrace.store.keys import Keys
from headrace.store.layout import AS_THEY_COME, Arrangement
from headrace.store.log import LogFile, Pin, RelationLog
from headrace.store.lookup import By, LookupCost
from headrace.store.parquet import WrittenParts


class Store(Protocol):
    """Logs of weighted rows, one a relation, each written by one writer at a time.

    `rows` are tables of `_weight` and the relation's columns. Every write is one commit from
    exactly `pin.version` and returns the next pin; at any other version it raises Unavailable
    `lease-lost` and writes nothing that counts. If there are rows, `epoch` must be greater than
    `pin.epoch`. A relation without changes gets no commit: the next pin has the same version and
    the new epoch.

    Reading is always at a pin, whatever was written since; `upto` is at most `pin.epoch`. A log
    that lacks what is pinned raises NeedsReinit `store-behind`. A store that cannot be used raises
    Unavailable `store-full` or `store-unreachable`; then, as after any failure, the writer calls
    `rollback` with the catalog's pin before it writes again.
    """

    def prepare(self) -> None:
        """Make the place where logs are kept, if it does not exist yet.

        Call it before a relation is recorded: if the place is missing later, that is an outage.
        """
        ...

    def create(
        self, relation: str, columns: pa.Schema, arrangement: Arrangement = AS_THEY_COME
    ) -> Pin:
        """Create an empty log at version 0, epoch 0.

        Large files are sorted by the order of the `arrangement`, so that lookups by it are fast;
        rows with different values in the column `apart` go to different files if they are many. An
        existing folder of that name remains from a creation that was never pinned, and is replaced.
        """
        ...

    def arrangement(self, relation: str, pin: Pin) -> Arrangement:
        """Return how the rows of a relation are arranged in large files."""
        ...

    def append(self, relation: str, pin: Pin, epoch: int, rows: pa.Table) -> Pin:
        """Add the change of one epoch from memory."""
        ...

    def extend(self, relation: str, pin: Pin, epoch: int, tables: Iterable[pa.Table]) -> Pin:
        """Add the change of one epoch from a sequence of tables, in one commit.

        Only one table at a time is in memory. If all are empty the pin stays the same.
        """
        ...

    def new_folder(self, relation: str, epoch: int) -> str:
        """Return the address of a new folder into which executors write the change of one epoch.

        Parts are Parquet files with `_epoch`, `_weight` and the columns, timestamps as
        TIMESTAMP_MICROS; they count only after `register`.
        """
        ...

    def register(
        self, relation: str, pin: Pin, epoch: int, folder: str, rows: int | None = None
    ) -> Pin:
        """Add the parts that executors wrote; `rows`, if known, must be their number of rows."""
        ...

    def new_scratch(self, relation: str) -> str:
        """Return the address of a new folder for temporary rows.

        `parts` reads the folder and its `discard` removes it; `rollback` removes those of dead
        writers.
        """
        ...

    def parts(self, folder: str, schema: pa.Schema) -> WrittenParts | pa.Table:
        """Return the rows that executors wrote into a folder, as rows of `schema` in batches."""
        ...

    def files(self, relation: str, pin: Pin, after: int, upto: int) -> tuple[LogFile, ...]:
        """Return the files that hold the epochs in (after, upto], oldest first, and no others.

        Raise NeedsReinit `epoch-expired` if a compaction crossed one of the two epochs.
        """
        ...

    def read(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table:
        """Return the weighted rows of the epochs in (after, upto], not netted."""
        ...

    def cached(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table | None:
        """Return the result of `read` if it is in memory, else None."""
        ...

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
        """Return the weighted rows up to the pin, or an earlier epoch, whose key is in the set.

        They have all columns, or those named, and are not netted. Other rows are not loaded, except
        to compare parts of keys. A result of more than `most` rows is incomplete. The `best` access
        path is an `index` that compares fewer rows, if there is one, else `pruned`: it skips row
        groups whose statistics rule the keys out. A `scan` reads the keys of all rows; a requested
        `index` is built if need be.
        """
        ...

    def lookup_cost(
        self,
        relation: str,
        pin: Pin,
        keys: Keys,
        columns: Collection[str] | None = None,
        upto: int | None = None,
    ) -> LookupCost:
        """Return how many stored rows the best `lookup` compares with the keys; a cheap call.

        Repeated calls have an index built, so later results may be smaller.
        """
        ...

    def compact(self, relation: str, pin: Pin, chosen: tuple[LogFile, ...]) -> Pin:
        """Replace adjacent files of the log by their sum; return the pin of the version after it.

        The sum is computed in memory. Epochs inside the chosen files cannot be read afterwards.
        `rollback` keeps a compaction that was committed but never pinned.
        """
        ...

    def log(self, relation: str, pin: Pin) -> RelationLog:
        """Return the log at a pin, as a value."""
        ...

    def write_merged(
        self, relation: str, log: RelationLog, chosen: tuple[LogFile, ...], folder: str
    ) -> None:
        """Write the sum of files into a `new_folder`, for `replace`; commit nothing.

        The relation's log may be at a later version by now.
        """
        ...

    def rows_in(self, log: RelationLog, epoch: int, folder: str) -> int:
        """Return how many rows of one epoch the parts of a folder hold, after checking them."""
        ...

    def discard(self, folder: str) -> None:
        """Remove a folder that no log names; on failure a vacuum removes it later."""
        ...

    def replace(
        self,
        relation: str,
        pin: Pin,
        chosen: tuple[LogFile, ...],
        folder: str,
        rows: int | None = None,
    ) -> Pin:
        """Replace adjacent files by the sum in a folder, as rows of the last chosen epoch.

        `rows`, if known, must be the number of rows in the parts.
        """
        ...

    def vacuum(self, relation: str, pin: Pin, older_than: timedelta) -> int:
        """Remove files that the log has not named for `older_than`; return how many.

        Until then readers with an older list of files can still read them.
        """
        ...

    def vacuum_is_due(self, relation: str, older_than: timedelta) -> bool:
        """Return whether a vacuum would remove files that it recorded earlier; a cheap call."""
        ...

    def rollback(self, relation: str, pin: Pin) -> Pin:
        """Remove exactly the files of epochs beyond the pin, in one commit, and then from disk.

        Return the pin with the same epoch and the log's version; without anything to remove there
        is no commit. Raise `store-behind` unless all files of the pin exist with the sizes that
        they were written with.
        """
        ...

    def damage(self, relation: str, pin: Pin) -> str | None:
        """Return what of the log at the pin is lost or unreadable; None if nothing is.

        Everything is read from storage, nothing from memory.
        """
        ...

    def require_writable(self) -> None:
        """Raise Unavailable if stored files cannot be changed or removed."""
        ...

    def drop(self, relation: str) -> None:
        """Remove the log and all its files; a missing log is no error."""
        ...
