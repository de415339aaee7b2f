"""Passing rows to a classic session, and replacing views, in few calls of the JVM.

PySpark reads settings one by one when it converts an Arrow table, and runs a command through the
whole planner for every view. This module makes the calls that both end in. They are not a public
API: if one is missing or fails, the session uses PySpark's own functions from then on.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.errors import InternalError
from headrace.spark.schema import struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ArrowLeaf:
    """Rows in the JVM that can be exchanged: a frame of one partition of one Arrow batch.

    `slot` is the array that holds the batch; every job reads its contents at the start.
    """

    frame: DataFrame
    schema: pa.Schema
    slot: Any


class JvmShortcuts:
    """The shortcuts into one session; `exchanges`: whether frames with exchangeable rows work."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: _Jvm | None = None
        self._open = hasattr(session, "_jsparkSession") and not _encrypts(session)
        self._view_metadata: dict[str, tuple[pa.Schema, Any]] = {}
        self.exchanges = self._open

    def frame(self, rows: pa.Table, schema: pa.Schema, most: int | None = None) -> DataFrame:
        """Return the rows as a frame with a partition for each chunk, or for each `most` rows.

        The rows have the schema. PySpark's own function partitions by a setting of the session.
        """
        if self._open:
            try:
                return self._direct_frame(rows, schema, most)
            except refusals() as error:
                self._close(error)
        return self._session.createDataFrame(rows, struct(schema))

    def leaf(self, rows: pa.Table, schema: pa.Schema) -> ArrowLeaf | None:
        """Return the rows as a frame whose rows can be exchanged; they have the schema.

        Return None if the session cannot exchange rows, or for more rows than fit one batch.
        """
        chunk = _one_batch(rows, schema)
        if not self._open or not self.exchanges or chunk is None:
            return None
        try:
            frame = self._direct_frame(chunk, schema)
            slot = frame._jdf.logicalPlan().rdd().partitions()[0].values().unsafeArray()  # noqa: SLF001
        except refusals() as error:
            logger.warning("could not keep plans of queries", extra={"error": str(error)})
            self.exchanges = False
            return None
        return ArrowLeaf(frame, schema, slot)

    def exchange(self, leaf: ArrowLeaf, rows: pa.Table) -> bool:
        """Replace the rows of a leaf's frame; return False if they are too many."""
        chunk = _one_batch(rows, leaf.schema)
        if chunk is not None:
            self._put_batch(leaf, chunk)
        return chunk is not None

    def show(self, name: str, schema: pa.Schema, frame: DataFrame) -> None:
        """Create or replace a view of a frame, which has that schema."""
        if self._open:
            try:
                self._put(name, schema, frame)
            except refusals() as error:
                self._close(error)
            else:
                return
        frame.createOrReplaceTempView(quoted(name))

    def drop(self, name: str) -> None:
        self._view_metadata.pop(name, None)
        self._session.catalog.dropTempView(name)

    def _direct_frame(
        self, rows: pa.Table | pa.RecordBatch, schema: pa.Schema, most: int | None = None
    ) -> DataFrame:
        from pyspark.sql import DataFrame

        jvm = self._in_jvm()
        batches = self._batches_in_jvm(rows, schema, most)
        taken = jvm.utils.toDataFrame(batches, struct(schema).json(), jvm.session)
        return DataFrame(taken, self._session)

    def _put_batch(self, leaf: ArrowLeaf, rows: pa.RecordBatch) -> None:
        copied = self._batches_in_jvm(rows, leaf.schema).copyToArray(leaf.slot)
        if copied != 1:
            raise InternalError("invariant", f"{copied} batches went into a leaf instead of one")

    def _batches_in_jvm(
        self, rows: pa.Table | pa.RecordBatch, schema: pa.Schema, most: int | None = None
    ) -> Any:
        """Return the rows as Arrow batches in the JVM, as an iterator."""
        jvm = self._in_jvm()
        descriptor, path = mkstemp(dir=jvm.folder)
        try:
            with os.fdopen(descriptor, "wb") as file, pa.ipc.new_stream(file, schema) as stream:
                if isinstance(rows, pa.RecordBatch):
                    stream.write_batch(rows)
                else:
                    stream.write_table(rows, most)
            return jvm.utils.readArrowStreamFromFile(path)
        finally:
            Path(path).unlink()

    def _put(self, name: str, schema: pa.Schema, frame: DataFrame) -> None:
        """Replace the plan of a view; recreate a view of other columns.

        Apart from its plan, everything that Spark records of a view follows from name and columns.
        """
        jvm = self._in_jvm()
        columns, metadata = self._view_metadata.get(name, (None, None))
        if columns == schema:
            plan = jvm.some(frame._jdf.logicalPlan())  # noqa: SLF001
            jvm.catalog.createTempView(name, jvm.view(metadata, plan), True)
        else:
            frame.createOrReplaceTempView(quoted(name))
            self._view_metadata[name] = schema, jvm.catalog.getRawTempView(name).get().tableMeta()

    def _in_jvm(self) -> _Jvm:
        if self._jvm is None:
            self._jvm = _Jvm(self._session)
        return self._jvm

    def _close(self, error: Exception) -> None:
        logger.warning("could not pass inputs to Spark directly", extra={"error": str(error)})
        self._open = False
        self._view_metadata.clear()


class _Jvm:
    """Objects and classes of the JVM, looked up once: a lookup by name is slower than a call."""

    def __init__(self, session: SparkSession) -> None:
        names: Any = session._jvm  # noqa: SLF001
        self.folder = session.sparkContext._temp_dir  # noqa: SLF001
        self.session: Any = session._jsparkSession  # noqa: SLF001
        self.catalog = self.session.sessionState().catalog()
        self.utils = names.PythonSQLUtils
        self.some = names.scala.Some
        self.view = names.org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation


def _one_batch(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the rows, even none, as one batch; None if they do not fit into one."""
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        return None
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def _encrypts(session: SparkSession) -> bool:
    """Return whether Spark encrypts its temporary files, so that ours must not be plain."""
    return bool(session.sparkContext._encryption_enabled)  # noqa: SLF001


def refusals() -> tuple[type[Exception], ...]:
    """Return the exceptions of a JVM call that does not exist or has changed."""
    from py4j.protocol import Py4JError

    return Py4JError, AttributeError, TypeError


def quoted(name: str) -> str:
    """Return the name as a quoted Spark identifier."""
    return "`" + name.replace("`", "``") + "`"
