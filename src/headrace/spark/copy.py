"""Copying a source under one exported snapshot: executors read PostgreSQL and write Parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headrace.source.ranges import Range
from headrace.source.table import SourceTable
from headrace.spark.jobs import Jobs, SparkCall
from headrace.spark.jvm_shortcuts import quoted
from headrace.spark.run import Runner, write_parts
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
    """The rows of the table in the snapshot, one partition a range, as weighted rows of the epoch.

    The transaction that exported the snapshot, and its lock on the table, must outlive the
    reading.
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
    """Write the table's rows in the snapshot as Parquet parts into a folder that does not exist.

    Each part is sorted by the columns of `order`; a table mostly lies in the order of its key.
    `progress` is told how many of the ranges are done, and of how many. Over Spark Connect it is
    only told the end.
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
