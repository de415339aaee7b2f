"""A Spark data source of the rows of a PostgreSQL table: executors read ranges of its pages.

Imports PySpark, so only `copy` imports it, and only when a table is copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headrace.errors import HeadraceError
from headrace.source.reading import stored_schema
from headrace.source.snapshot import Range, range_sql, read_in_snapshot
from headrace.source.table import SourceColumn, SourceTable
from headrace.spark.failures import WorkerFailure
from headrace.spark.schema import EPOCH, LOG_FIELDS, WEIGHT
from headrace.types import Type

NAME = "headrace_postgres"
# Spark redacts options in plans if their name contains a word such as "secret".
SECRET = "secret.conninfo"  # noqa: S105  the name of an option


def copy_schema(columns: Sequence[SourceColumn]) -> pa.Schema:
    """Return the columns of a copy: epoch, weight, and the stored columns by physical name."""
    return pa.schema([*LOG_FIELDS, *stored_schema(columns)])


def options(
    conninfo: str, snapshot: str, table: SourceTable, ranges: Sequence[Range], epoch: int
) -> dict[str, str]:
    """Return the options of the data source for a copy; all SQL is rendered here."""
    columns = table.stored
    parts = [range_sql(part, columns) for part in ranges]
    return {
        SECRET: conninfo,
        "snapshot": snapshot,
        "columns": json.dumps([_to_json(column) for column in columns]),
        "parts": json.dumps(parts),
        "epoch": str(epoch),
    }


class PostgresSource(DataSource):
    """The data source registered as `NAME`, with the options of `options`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def reader(self, schema: StructType) -> DataSourceReader:
        return PostgresReader(
            conninfo=self.options[SECRET],
            snapshot=self.options["snapshot"],
            columns=tuple(_from_json(fields) for fields in json.loads(self.options["columns"])),
            parts=tuple((lock, query) for lock, query in json.loads(self.options["parts"])),
            epoch=int(self.options["epoch"]),
        )


class PostgresReader(DataSourceReader):
    """Reads each part in the shared snapshot, one batch in memory at a time."""

    def __init__(
        self,
        *,
        conninfo: str,
        snapshot: str,
        columns: tuple[SourceColumn, ...],
        parts: tuple[tuple[str, str], ...],
        epoch: int,
    ) -> None:
        self._conninfo = conninfo
        self._snapshot = snapshot
        self._columns = columns
        self._parts = parts
        self._epoch = epoch

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # For a table without leaves, and so without parts, Spark adds a partition of its own.
        if partition.value is None:
            return
        lock, query = partition.value
        schema = copy_schema(self._columns)
        rows = read_in_snapshot(self._conninfo, self._snapshot, lock, query, self._columns)
        try:
            for stored in rows:
                yield from self._logged(stored, schema).to_batches()
        except HeadraceError as error:
            raise WorkerFailure(error.code, error.message) from None

    def _logged(self, stored: pa.Table, schema: pa.Schema) -> pa.Table:
        count = stored.num_rows
        log = {
            EPOCH: pa.repeat(pa.scalar(self._epoch, pa.int64()), count),
            WEIGHT: pa.repeat(pa.scalar(1, pa.int64()), count),
        }
        columns = [log.get(name) if name in log else stored[name] for name in schema.names]
        return pa.Table.from_arrays(columns, schema=schema)


def _to_json(column: SourceColumn) -> dict[str, Any]:
    assert column.type is not None
    return {**vars(column), "type": column.type.to_json()}


def _from_json(fields: dict[str, Any]) -> SourceColumn:
    return SourceColumn(**{**fields, "type": Type.from_json(fields["type"])})
