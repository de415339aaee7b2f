"""Parquet files of weighted rows: written from Arrow, or written by Spark and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from errno import ENOENT

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.errors import InternalError
from headrace.store.actions import bounds_in
from headrace.store.failure import unavailable
from headrace.store.layout import EPOCH, GROUP_ROWS, WEIGHT, fields, stored, weighted
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, RelationLog

FOOTER_READERS = 8


def write_part(files: pafs.FileSystem, path: str, rows: pa.Table, epoch: int) -> int:
    """Write weighted rows of one epoch, return the file's size; a failed write leaves no file."""
    epochs = pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows)
    try:
        # No Arrow schema in the footer: a file of ours is read as one of Spark's is.
        pq.write_table(
            rows.add_column(0, EPOCH, epochs),
            path,
            filesystem=files,
            row_group_size=GROUP_ROWS,
            compression="zstd",
            store_schema=False,
        )
    except BaseException:
        discard(files, path)
        raise
    return int(files.get_file_info(path).size)


def discard(files: pafs.FileSystem, path: str) -> None:
    """Remove a file that no commit names; on failure vacuum removes it later."""
    with suppress(OSError):
        files.delete_file(path)


def parts_in(
    place: StoreLocation, folder: str, log: RelationLog, epoch: int
) -> tuple[LogFile, ...]:
    """Return the checked parts of a folder that hold rows, as files of a log.

    An executor leaves a part even for no rows, so an empty folder was written elsewhere, which is
    an error.
    """
    files = place.files
    entries = files.get_file_info(pafs.FileSelector(place.path(folder)))
    if not entries:
        raise FileNotFoundError(ENOENT, "nothing was written", folder)
    parts = [entry for entry in entries if entry.is_file and is_part(entry.base_name)]
    with ThreadPoolExecutor(FOOTER_READERS) as pool:
        footers = list(pool.map(lambda part: checked(files, part.path, log.columns, epoch), parts))
    return tuple(
        LogFile(
            f"{folder}/{part.base_name}",
            footer.num_rows,
            part.size,
            epoch,
            epoch,
            least_weight_in(footer),
            bounds_in(footer, log.arrangement.apart),
        )
        for part, footer in zip(parts, footers, strict=True)
        if footer.num_rows
    )


def is_part(name: str) -> bool:
    """Return whether Spark would read a file of that name."""
    return name.endswith(".parquet") and not name.startswith(("_", "."))


def checked(files: pafs.FileSystem, path: str, columns: pa.Schema, epoch: int) -> pq.FileMetaData:
    """Return the footer of a part that Spark wrote, after checking that the log may hold the part.

    Every column must have its stored type, every row a weight, and the statistics of every row
    group must say that all its rows are of the epoch.
    """
    with files.open_input_file(path) as source:
        footer = pq.ParquetFile(source).metadata
    part_fields = fields(footer.schema.to_arrow_schema())
    if sorted(part_fields, key=str) != sorted(fields(stored(columns)), key=str):
        raise InternalError(
            "invariant",
            f"part {path} does not have the columns of its relation",
            detail=f"Expected {fields(stored(columns))}, got {part_fields}.",
        )
    names = [name for name, _ in part_fields]
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if not group.num_rows:
            continue
        epochs = group.column(names.index(EPOCH)).statistics
        if epochs is None or not epochs.has_min_max or not epochs.has_null_count:
            raise InternalError("invariant", f"part {path} has no statistics of its epochs")
        if (epochs.min, epochs.max, epochs.null_count) != (epoch, epoch, 0):
            raise InternalError(
                "invariant",
                f"part {path} has epochs {epochs.min} to {epochs.max}, not {epoch} alone",
            )
        weights = group.column(names.index(WEIGHT)).statistics
        if weights is None or not weights.has_null_count or weights.null_count:
            raise InternalError("invariant", f"part {path} has rows without a weight")
    return footer


def least_weight_in(footer: pq.FileMetaData) -> int | None:
    """Return the least weight of a file's rows by its footer; None without statistics."""
    place = footer.schema.names.index(WEIGHT)
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    statistics = [group.column(place).statistics for group in groups if group.num_rows]
    if not all(each is not None and each.has_min_max for each in statistics):
        return None
    return min((each.min for each in statistics), default=None)


def read_part(files: pafs.FileSystem, path: str, columns: pa.Schema) -> pa.Table:
    """Return the weighted rows of a file."""
    schema = weighted(columns)
    with files.open_input_file(path) as source:
        return pq.ParquetFile(source).read(schema.names).select(schema.names).cast(schema)


@dataclass(frozen=True)
class WrittenParts:
    """The Parquet parts of a folder as rows of `schema`, in any order.

    The interface is that of an Arrow table; the rows are never in memory as a whole.
    """

    place: StoreLocation
    folder: str
    schema: pa.Schema

    def select(self, names: Sequence[str]) -> WrittenParts:
        """Return the same rows with these columns only."""
        return replace(self, schema=pa.schema([self.schema.field(name) for name in names]))

    def to_batches(self, max_chunksize: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of at most `max_chunksize`, from the first each time."""
        files = self.place.files
        try:
            entries = files.get_file_info(pafs.FileSelector(self.place.path(self.folder)))
            for path in sorted(e.path for e in entries if e.is_file and is_part(e.base_name)):
                with files.open_input_file(path) as source:
                    part = pq.ParquetFile(source)
                    for batch in part.iter_batches(max_chunksize, columns=self.schema.names):
                        yield batch.select(self.schema.names).cast(self.schema)
        except (OSError, pa.ArrowException) as error:
            raise unavailable(error, self.place, writing=False) from error

    def discard(self) -> None:
        """Remove the folder; on failure a rollback or vacuum of the log removes it."""
        with suppress(OSError):
            self.place.files.delete_dir(self.place.path(self.folder))
