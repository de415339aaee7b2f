"""A source's live rows beside its relation's old state: what differs, written or collected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from headrace.source.ranges import Range
from headrace.source.table import SourceTable
from headrace.spark.copy import read_table
from headrace.spark.jvm_shortcuts import quoted
from headrace.spark.run import Input, Runner, TooLarge, write_parts
from headrace.spark.schema import struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Result = TypeVar("Result")


@dataclass(frozen=True)
class LiveRows:
    """A table's rows in an exported snapshot, as the view `name` with the columns of `schema`.

    Columns that the table no longer has are NULL. The transaction that exported the snapshot, and
    its lock on the table, must outlive the reading.
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
    """Let the executors write the rows of `sql` over the live rows and the old state."""
    _over(runner, live, old, sql, lambda frame: write_parts(frame, folder))


def collect_difference(
    runner: Runner, live: LiveRows, old: Input, sql: str, limit: int
) -> pa.Table | TooLarge:
    """The rows of `sql` over the live rows and the old state."""

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
