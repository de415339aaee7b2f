"""Rows that executors wrote into a folder and that only pass through, read a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from headrace.store.failure import unavailable
from headrace.store.location import StoreLocation
from headrace.store.part import is_part


@dataclass(frozen=True)
class WrittenParts:
    """The Parquet parts of a folder as rows of `schema`, in any order.

    It is read like an Arrow table, and is never in memory as a whole.
    """

    place: StoreLocation
    folder: str
    schema: pa.Schema

    def select(self, names: Sequence[str]) -> WrittenParts:
        """The same rows with these columns only."""
        return replace(self, schema=pa.schema([self.schema.field(name) for name in names]))

    def to_batches(self, max_chunksize: int) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most so many, from the first each time."""
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
        """Remove the folder; where that fails, whoever tidies up the log removes it."""
        with suppress(OSError):
            self.place.files.delete_dir(self.place.path(self.folder))
