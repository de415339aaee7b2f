"""One Parquet file: written from Arrow, or written by Spark and checked by its footer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import ENOENT

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.errors import InternalError
from headrace.store.file_bounds import bounds_in
from headrace.store.layout import EPOCH, GROUP_ROWS, WEIGHT, fields, stored, weighted
from headrace.store.location import StoreLocation
from headrace.store.log import LogFile, RelationLog

FOOTER_READERS = 8


def write_part(files: pafs.FileSystem, path: str, rows: pa.Table, epoch: int) -> int:
    """Write weighted rows of one epoch and give the file's size; a failed write leaves no file."""
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
    """Remove a file that no commit names; failing to is harmless, vacuum finds it later."""
    with suppress(OSError):
        files.delete_file(path)


def parts_in(
    place: StoreLocation, folder: str, log: RelationLog, epoch: int
) -> tuple[LogFile, ...]:
    """The checked parts of a folder that hold rows, as files of a log.

    An executor leaves a part even for no rows, so a folder with nothing in it was written
    somewhere else, and is an error.
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
    """Whether Spark would read a file of that name."""
    return name.endswith(".parquet") and not name.startswith(("_", "."))


def checked(files: pafs.FileSystem, path: str, columns: pa.Schema, epoch: int) -> pq.FileMetaData:
    """The footer of a part that Spark wrote.

    It is checked to be what the log may hold: every column has its stored type, every row has a
    weight, and every row group's statistics say that all its rows are of the one epoch.
    """
    with files.open_input_file(path) as source:
        footer = pq.ParquetFile(source).metadata
    found = fields(footer.schema.to_arrow_schema())
    if sorted(found, key=str) != sorted(fields(stored(columns)), key=str):
        raise InternalError(
            "invariant",
            f"part {path} does not have the columns of its relation",
            detail=f"wanted {fields(stored(columns))}, got {found}.",
        )
    names = [name for name, _ in found]
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
    """The least weight of a file's rows, by the statistics in its footer, where these tell it."""
    place = footer.schema.names.index(WEIGHT)
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    found = [group.column(place).statistics for group in groups if group.num_rows]
    if not all(one is not None and one.has_min_max for one in found):
        return None
    return min((one.min for one in found), default=None)


def read_part(files: pafs.FileSystem, path: str, columns: pa.Schema) -> pa.Table:
    """The weighted rows of a file."""
    wanted = weighted(columns)
    with files.open_input_file(path) as source:
        return pq.ParquetFile(source).read(wanted.names).select(wanted.names).cast(wanted)
