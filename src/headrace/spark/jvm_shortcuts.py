"""Rows handed to a classic session, and views put in place of others, in few calls of the JVM.

PySpark asks for settings one by one when it takes in an Arrow table, and runs a command through the
whole planner for every view. Here are the calls that both end in. They are nobody's promise: where
one of them is missing or refused, all goes PySpark's way from then on.
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

    `slot` is the array that holds the batch; every job takes from it what is there at its start.
    """

    frame: DataFrame
    schema: pa.Schema
    slot: Any


class JvmShortcuts:
    """The way into one session. `exchanges` says whether it has leaves."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: _Jvm | None = None
        self._open = hasattr(session, "_jsparkSession") and not _encrypts(session)
        self._known: dict[str, tuple[pa.Schema, Any]] = {}
        self.exchanges = self._open

    def frame(self, rows: pa.Table, schema: pa.Schema, most: int | None = None) -> DataFrame:
        """The rows, which have that schema, a partition for each chunk, or for `most` rows of it.

        On PySpark's way a setting of the session says how many.
        """
        if self._open:
            try:
                return self._direct_frame(rows, schema, most)
            except refusals() as error:
                self._close(error)
        return self._session.createDataFrame(rows, struct(schema))

    def leaf(self, rows: pa.Table, schema: pa.Schema) -> ArrowLeaf | None:
        """The rows, which have that schema, as a frame whose rows can be exchanged.

        None where they cannot be, or are too many for one batch.
        """
        chunk = _one_batch(rows, schema)
        if not self._open or not self.exchanges or chunk is None:
            return None
        try:
            frame = self._direct_frame(chunk, schema)
            slot = frame._jdf.logicalPlan().rdd().partitions()[0].values().unsafeArray()  # noqa: SLF001
        except refusals() as error:
            logger.warning("plans of queries are not kept", extra={"error": str(error)})
            self.exchanges = False
            return None
        return ArrowLeaf(frame, schema, slot)

    def exchange(self, leaf: ArrowLeaf, rows: pa.Table) -> bool:
        """Have the leaf's frame give these rows from now on; False if they are too many."""
        chunk = _one_batch(rows, leaf.schema)
        if chunk is not None:
            self._put_batch(leaf, chunk)
        return chunk is not None

    def show(self, name: str, schema: pa.Schema, frame: DataFrame) -> None:
        """Have a view of that name give the rows of a frame, which has that schema."""
        if self._open:
            try:
                self._put(name, schema, frame)
            except refusals() as error:
                self._close(error)
            else:
                return
        frame.createOrReplaceTempView(quoted(name))

    def drop(self, name: str) -> None:
        self._known.pop(name, None)
        self._session.catalog.dropTempView(name)

    def _direct_frame(
        self, rows: pa.Table | pa.RecordBatch, schema: pa.Schema, most: int | None = None
    ) -> DataFrame:
        from pyspark.sql import DataFrame

        jvm = self._in_jvm()
        batches = self._handed_over(rows, schema, most)
        taken = jvm.utils.toDataFrame(batches, struct(schema).json(), jvm.session)
        return DataFrame(taken, self._session)

    def _put_batch(self, leaf: ArrowLeaf, rows: pa.RecordBatch) -> None:
        copied = self._handed_over(rows, leaf.schema).copyToArray(leaf.slot)
        if copied != 1:
            raise InternalError("invariant", f"{copied} batches went into a leaf instead of one")

    def _handed_over(
        self, rows: pa.Table | pa.RecordBatch, schema: pa.Schema, most: int | None = None
    ) -> Any:
        """The rows as Arrow batches in the JVM: an iterator over those of a table, or the one."""
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
        """Put a frame's plan in the place of a view's; a view of other columns is made anew.

        What Spark knows of a view beside its plan follows from its name and columns.
        """
        jvm = self._in_jvm()
        columns, known = self._known.get(name, (None, None))
        if columns == schema:
            plan = jvm.some(frame._jdf.logicalPlan())  # noqa: SLF001
            jvm.catalog.createTempView(name, jvm.view(known, plan), True)
        else:
            frame.createOrReplaceTempView(quoted(name))
            self._known[name] = schema, jvm.catalog.getRawTempView(name).get().tableMeta()

    def _in_jvm(self) -> _Jvm:
        if self._jvm is None:
            self._jvm = _Jvm(self._session)
        return self._jvm

    def _close(self, error: Exception) -> None:
        logger.warning("inputs go to Spark the long way", extra={"error": str(error)})
        self._open = False
        self._known.clear()


class _Jvm:
    """What is called in the JVM, looked up once: by its name that takes longer than a call."""

    def __init__(self, session: SparkSession) -> None:
        names: Any = session._jvm  # noqa: SLF001
        self.folder = session.sparkContext._temp_dir  # noqa: SLF001
        self.session: Any = session._jsparkSession  # noqa: SLF001
        self.catalog = self.session.sessionState().catalog()
        self.utils = names.PythonSQLUtils
        self.some = names.scala.Some
        self.view = names.org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation


def _one_batch(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch | None:
    """The rows, also if there are none, as one batch; None if they do not go into one."""
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        return None
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def _encrypts(session: SparkSession) -> bool:
    """Whether Spark encrypts what it keeps on disk, so that nothing may lie there in plain."""
    return bool(session.sparkContext._encryption_enabled)  # noqa: SLF001


def refusals() -> tuple[type[Exception], ...]:
    """What says that a call is not there, or not as it was."""
    from py4j.protocol import Py4JError

    return Py4JError, AttributeError, TypeError


def quoted(name: str) -> str:
    """The name as a Spark identifier."""
    return "`" + name.replace("`", "``") + "`"
