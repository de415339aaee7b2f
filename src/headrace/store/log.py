"""A relation's log as values: pins, files, and the files at one Delta version."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.errors import InternalError
from headrace.store.layout import AS_THEY_COME, Arrangement

if TYPE_CHECKING:
    from headrace.store.actions import FileBounds


@dataclass(frozen=True, order=True)
class Pin:
    """The Delta version and the epoch a relation is at; beyond it nothing counts."""

    version: int
    epoch: int

    def at(self, epoch: int) -> Pin:
        """Return the pin of a relation that did not change up to an epoch; epochs never go back."""
        return Pin(self.version, max(self.epoch, epoch))


@dataclass(frozen=True)
class LogFile:
    """One Parquet file of weighted rows, whose epochs are first_epoch to last_epoch.

    `uri` is what Spark reads: a plain path for a local store, else the root as it was given with
    the file's path behind it. A file of several epochs is their sum, which cannot be separated
    again; its rows all have `_epoch` last_epoch. `least_weight` is not known for every file.
    `bounds` go into the commit that adds the file, and are not read back.
    """

    uri: str
    rows: int
    bytes: int
    first_epoch: int
    last_epoch: int
    least_weight: int | None = None
    bounds: FileBounds | None = field(default=None, compare=False)

    @property
    def only_adds(self) -> bool:
        """Return whether no row of the file retracts another, as far as is known."""
        return not self.rows or (self.least_weight is not None and self.least_weight > 0)

    def touches(self, after: int, upto: int) -> bool:
        """Return whether the file may hold rows with epochs in (after, upto]."""
        return after < self.last_epoch and self.first_epoch <= upto


@dataclass(frozen=True)
class RelationLog:
    """The live files of a relation at one Delta version, oldest epoch first."""

    version: int
    columns: pa.Schema
    files: tuple[LogFile, ...]
    arrangement: Arrangement = AS_THEY_COME

    def between(self, after: int, upto: int) -> tuple[LogFile, ...]:
        """Return the files that hold the epochs in (after, upto]."""
        return tuple(file for file in self.files if file.touches(after, upto))

    def merged_across(self, epoch: int) -> LogFile | None:
        """Return the file with epochs on both sides of an epoch, which cannot be read then."""
        across = (file for file in self.files if file.first_epoch <= epoch < file.last_epoch)
        return next(across, None)

    def beyond(self, epoch: int) -> tuple[LogFile, ...]:
        """Return the files of later epochs; raise `invariant` for a file on both sides."""
        if across := self.merged_across(epoch):
            raise InternalError(
                "invariant", f"{across.uri} holds epochs on both sides of epoch {epoch}"
            )
        return tuple(file for file in self.files if file.first_epoch > epoch)

    def after_commit(self, added: tuple[LogFile, ...], removed: tuple[LogFile, ...]) -> RelationLog:
        """Return the log one version later."""
        remaining = tuple(file for file in self.files if file not in removed)
        return replace(self, version=self.version + 1, files=in_order(remaining + added))


def in_order(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """Return the files by epoch, so that equal logs are equal values."""
    return tuple(sorted(files, key=lambda file: (file.first_epoch, file.last_epoch, file.uri)))
