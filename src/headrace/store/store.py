"""The seam between the engine and wherever relations are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Protocol

import pyarrow as pa

from headrace.store.arrangement import AS_THEY_COME, Arrangement
from headrace.store.keys import Keys
from headrace.store.log import LogFile, Pin, RelationLog
from headrace.store.lookup import By, LookupCost
from headrace.store.written_parts import WrittenParts


class Store(Protocol):
    """Logs of weighted rows, one a relation, each written by one writer at a time.

    `rows` are tables of `_weight` and the relation's columns. Every write is one commit from
    exactly `pin.version` and gives the next pin; if the relation is anywhere else it raises
    Unavailable `lease-lost` and writes nothing that counts. Where there are rows, `epoch`
    must be greater than `pin.epoch`. A relation without changes gets no commit: the next pin has
    the same version and the new epoch.

    Reading is always at a pin, whatever was written since; `upto` is at most `pin.epoch`. A log
    that does not hold what the pin says raises NeedsReinit `store-behind`. A store that cannot be
    used raises Unavailable `store-full` or `store-unreachable`; then, as after any failure, the
    writer calls `rollback` with the catalog's pin before it writes again.
    """

    def prepare(self) -> None:
        """Make the place where logs are kept, if it is not there yet.

        To be done before a relation is recorded: a place that is gone later is an outage.
        """
        ...

    def create(
        self, relation: str, columns: pa.Schema, arrangement: Arrangement = AS_THEY_COME
    ) -> Pin:
        """Make an empty log at version 0, epoch 0.

        Large files are sorted by the order of the `arrangement`, so that rows are best looked up by
        it; rows with different values in the column `apart` come into different files, if they
        are many. A folder of that name is the remains of a creation that was never pinned: it is
        replaced.
        """
        ...

    def arrangement(self, relation: str, pin: Pin) -> Arrangement:
        """How rows of a relation lie in large files."""
        ...

    def append(self, relation: str, pin: Pin, epoch: int, rows: pa.Table) -> Pin:
        """Add the change of one epoch from memory."""
        ...

    def extend(self, relation: str, pin: Pin, epoch: int, tables: Iterable[pa.Table]) -> Pin:
        """Add the change of one epoch from tables that come one by one, in one commit.

        No more than one of them is needed in memory. If all are empty the pin is the same.
        """
        ...

    def new_folder(self, relation: str, epoch: int) -> str:
        """The address of a folder, not yet made, where executors write the change of one epoch.

        Parts are Parquet files with `_epoch`, `_weight` and the columns, timestamps as
        TIMESTAMP_MICROS; they count only once registered.
        """
        ...

    def register(
        self, relation: str, pin: Pin, epoch: int, folder: str, rows: int | None = None
    ) -> Pin:
        """Add the parts that executors wrote; `rows`, if known, must be what the parts hold."""
        ...

    def new_scratch(self, relation: str) -> str:
        """The address of a folder, not yet made, for rows that only pass through.

        `parts` reads it and its `discard` removes it; what a dead writer left, `rollback` removes.
        """
        ...

    def parts(self, folder: str, schema: pa.Schema) -> WrittenParts | pa.Table:
        """What executors wrote into a folder, as rows of `schema` in batches."""
        ...

    def files(self, relation: str, pin: Pin, after: int, upto: int) -> tuple[LogFile, ...]:
        """The files that hold the epochs in (after, upto], oldest first, and no other epochs.

        Raises NeedsReinit `epoch-expired` where a compaction went across one of the two.
        """
        ...

    def read(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table:
        """The weighted rows of the epochs in (after, upto], not netted."""
        ...

    def cached(self, relation: str, pin: Pin, after: int, upto: int) -> pa.Table | None:
        """What `read` gives, if it can be had without reading any file."""
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
        """The weighted rows up to the pin, or an earlier epoch, whose key is in the set.

        They have all columns, or those named, and are not netted. No other rows are in memory,
        except those that are there already or have a part of the key. More than `most` rows are not
        all. The `best` way is by an `index` where there is one that compares fewer rows, else
        `pruned`: without row groups that cannot have such a key by their statistics. A `scan` reads
        the keys of all; an `index` asked for is made.
        """
        ...

    def reach(
        self,
        relation: str,
        pin: Pin,
        keys: Keys,
        columns: Collection[str] | None = None,
        upto: int | None = None,
    ) -> LookupCost:
        """How many stored rows the best `lookup` compares with the keys; cheap to ask.

        What is asked for again and again may become cheaper.
        """
        ...

    def compact(self, relation: str, pin: Pin, chosen: tuple[LogFile, ...]) -> Pin:
        """Replace files, neighbours in the log, by their sum; the pin with the version after it.

        The sum is made in memory. Epochs inside the chosen files cannot be read afterwards. A
        compaction that was committed but never pinned is found by `rollback`, and kept.
        """
        ...

    def log(self, relation: str, pin: Pin) -> RelationLog:
        """The log at a pin, as a value."""
        ...

    def write_sum(
        self, relation: str, log: RelationLog, chosen: tuple[LogFile, ...], folder: str
    ) -> None:
        """Write what `compact` would put in their place into a `new_folder`, and commit nothing.

        By now the relation's log may be at a later version.
        """
        ...

    def rows_in(self, log: RelationLog, epoch: int, folder: str) -> int:
        """How many rows of one epoch the parts in a folder hold, which are checked."""
        ...

    def discard(self, folder: str) -> None:
        """Remove a folder that no log names; failing to is harmless, a vacuum finds it."""
        ...

    def replace(
        self,
        relation: str,
        pin: Pin,
        chosen: tuple[LogFile, ...],
        folder: str,
        rows: int | None = None,
    ) -> Pin:
        """`compact` where a folder has the sum, as rows of the last chosen epoch.

        `rows`, if known, must be what the parts hold.
        """
        ...

    def vacuum(self, relation: str, pin: Pin, older_than: timedelta) -> int:
        """Remove files that the log at the pin has not named for so long; how many.

        Whoever took a list of files before they were replaced can read them until then.
        """
        ...

    def vacuum_is_due(self, relation: str, older_than: timedelta) -> bool:
        """Whether a vacuum noted files that it would remove by now; cheap enough to ask often."""
        ...

    def rollback(self, relation: str, pin: Pin) -> Pin:
        """Remove exactly the files of epochs beyond the pin, in one commit, and then from disk.

        Gives the pin with the same epoch and the version that the log is at now; the same pin, and
        no commit, if nothing lies beyond. The files that the pin does name must all be there, each
        with the size that it was written with: else that is `store-behind`.
        """
        ...

    def damage(self, relation: str, pin: Pin) -> str | None:
        """What of the log at the pin is lost or cannot be read; None if all of it can.

        Everything is read from where it is stored, nothing from memory.
        """
        ...

    def require_writable(self) -> None:
        """Raise Unavailable if what is stored cannot be changed or removed."""
        ...

    def drop(self, relation: str) -> None:
        """Remove the log and all its files; a log that is not there is no error."""
        ...
