"""Copying a source in an exported snapshot: as a whole, or as the difference to its relation.

Executors read PostgreSQL and write Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from headrace.source.snapshot import Range
from headrace.source.table import SourceTable
from headrace.spark.jobs import Jobs, SparkCall
from headrace.spark.jvm_shortcuts import quoted
from headrace.spark.run import Input, Runner, TooLarge, write_parts
from headrace.spark.schema import struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[int, int], None]


def read_table(
    session: SparkSession,
    conninfo: str,
    snapshot: str,
    table: SourceTable,
    ranges: Sequence[Range],
    epoch: int,
) -> DataFrame:
    """Return the rows of the table in the snapshot, as weighted rows, one partition per range.

    The exporting transaction, and its lock on the table, must outlive the read.
    """
    from headrace.spark.postgres_source import NAME, PostgresSource, copy_schema, options

    session.dataSource.register(PostgresSource)
    reader = session.read.format(NAME).schema(struct(copy_schema(table.stored)))
    return reader.options(**options(conninfo, snapshot, table, ranges, epoch)).load()


def copy_table(
    runner: Runner,
    conninfo: str,
    snapshot: str,
    table: SourceTable,
    ranges: Sequence[Range],
    epoch: int,
    folder: str,
    progress: Progress | None = None,
    order: Sequence[str] = (),
) -> None:
    """Write the table's rows in the snapshot as Parquet parts into a new folder.

    Each part is sorted by the columns of `order`; a table mostly is in the order of its key.
    `progress` gets the number of finished ranges and their total; over Spark Connect only at the
    end.
    """
    total = len(ranges)

    def work(session: SparkSession) -> None:
        rows = read_table(session, conninfo, snapshot, table, ranges, epoch)
        write_parts(rows.sortWithinPartitions(*map(quoted, order)) if order else rows, folder)

    def watch(jobs: Jobs, call: SparkCall) -> None:
        done = jobs.tasks_done(call)
        if progress is not None and done is not None:
            progress(min(done, total), total)

    runner.call("wide", (), work, watch=watch if progress else None)
    if progress is not None:
        progress(total, total)


Result = TypeVar("Result")


@dataclass(frozen=True)
class LiveRows:
    """A table's rows in an exported snapshot, as the view `name` with the columns of `schema`.

    Columns that the table no longer has are NULL. The exporting transaction, and its lock on the
    table, must outlive the read.
    """

    name: str
    schema: pa.Schema
    conninfo: str
    snapshot: str
    table: SourceTable
    ranges: Sequence[Range]
    epoch: int

    def frame(self, session: SparkSession) -> DataFrame:
        live = read_table(
            session, self.conninfo, self.snapshot, self.table, self.ranges, self.epoch
        )
        present = frozenset(live.columns)
        return live.selectExpr(
            *(
                quoted(field.name)
                if field.name in present
                else f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}"
                for field in struct(self.schema).fields
            )
        )


def write_difference(runner: Runner, live: LiveRows, old: Input, sql: str, folder: str) -> None:
    """Have executors write the result of `sql` over the live rows and the old state."""
    _over(runner, live, old, sql, lambda frame: write_parts(frame, folder))


def collect_difference(
    runner: Runner, live: LiveRows, old: Input, sql: str, limit: int
) -> pa.Table | TooLarge:
    """Return the result of `sql` over the live rows and the old state, up to `limit` rows."""

    def collect(frame: DataFrame) -> pa.Table | TooLarge:
        rows = frame.limit(limit + 1).toArrow()
        return rows if rows.num_rows <= limit else TooLarge(limit)

    return _over(runner, live, old, sql, collect)


def _over(
    runner: Runner, live: LiveRows, old: Input, sql: str, work: Callable[[DataFrame], Result]
) -> Result:
    def in_session(session: SparkSession) -> Result:
        live.frame(session).createOrReplaceTempView(live.name)
        try:
            return work(session.sql(sql))
        finally:
            session.catalog.dropTempView(live.name)

    return runner.call("wide", (old,), in_session)
