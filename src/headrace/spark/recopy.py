"""Copying a source again: executors write only what differs from the relation's old state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.source.ranges import Range
from headrace.source.table import SourceTable
from headrace.spark.copy import read_table
from headrace.spark.run import Input, Runner, write_parts
from headrace.spark.schema import struct
from headrace.spark.views import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_recopy(
    runner: Runner,
    conninfo: str,
    snapshot: str,
    table: SourceTable,
    ranges: Sequence[Range],
    copied: Input,
    old: Input,
    sql: str,
    epoch: int,
    folder: str,
) -> None:
    """Run `sql` over the live rows (view `copied.name`) and the old state; write parts.

    The live rows get NULL in columns of `copied.schema` that the table no longer has.
    """

    def work(session: SparkSession) -> None:
        live = read_table(session, conninfo, snapshot, table, ranges, epoch)
        live.selectExpr(*_selected(copied.schema, frozenset(live.columns))).createOrReplaceTempView(
            copied.name
        )
        write_parts(session.sql(sql), folder)
        session.catalog.dropTempView(copied.name)

    runner.call("wide", (old,), work)


def _selected(schema: pa.Schema, present: frozenset[str]) -> list[str]:
    return [
        quoted(field.name)
        if field.name in present
        else f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}"
        for field in struct(schema).fields
    ]
