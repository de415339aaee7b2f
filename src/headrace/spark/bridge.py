"""Rows handed to a classic session, and views put in place of others, in few calls of the JVM.

PySpark asks for settings one by one when it takes in an Arrow table, and runs a command through the
whole planner for every view. Here are the calls that both end in. They are nobody's promise: where
one of them is missing or refused, all goes PySpark's way from then on.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.spark.schema import struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)


class Bridge:
    """The way into one session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: _Jvm | None = None
        self._open = hasattr(session, "_jsparkSession") and not _encrypts(session)
        self._known: dict[str, tuple[pa.Schema, Any]] = {}

    def frame(self, rows: pa.Table, schema: pa.Schema, most: int | None = None) -> DataFrame:
        """The rows, which have that schema, a partition for each chunk, or for `most` rows of it.

        On PySpark's way a setting of the session says how many.
        """
        if self._open:
            try:
                return self._direct_frame(rows, schema, most)
            except _refusals() as error:
                self._close(error)
        return self._session.createDataFrame(rows, struct(schema))

    def show(self, name: str, schema: pa.Schema, frame: DataFrame) -> None:
        """Have a view of that name give the rows of a frame, which has that schema."""
        if self._open:
            try:
                self._put(name, schema, frame)
            except _refusals() as error:
                self._close(error)
            else:
                return
        frame.createOrReplaceTempView(quoted(name))

    def drop(self, name: str) -> None:
        self._known.pop(name, None)
        self._session.catalog.dropTempView(name)

    def _direct_frame(self, rows: pa.Table, schema: pa.Schema, most: int | None) -> DataFrame:
        from pyspark.sql import DataFrame

        jvm = self._in_jvm()
        descriptor, path = mkstemp(dir=jvm.folder)
        try:
            with os.fdopen(descriptor, "wb") as file, pa.ipc.new_stream(file, schema) as stream:
                stream.write_table(rows, most)
            batches = jvm.utils.readArrowStreamFromFile(path)
        finally:
            Path(path).unlink()
        taken = jvm.utils.toDataFrame(batches, struct(schema).json(), jvm.session)
        return DataFrame(taken, self._session)

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


def _encrypts(session: SparkSession) -> bool:
    """Whether Spark encrypts what it keeps on disk, so that nothing may lie there in plain."""
    return bool(session.sparkContext._encryption_enabled)  # noqa: SLF001


def _refusals() -> tuple[type[Exception], ...]:
    """What says that a call is not there, or not as it was."""
    from py4j.protocol import Py4JError

    return Py4JError, AttributeError, TypeError


def quoted(name: str) -> str:
    """The name as a Spark identifier."""
    return "`" + name.replace("`", "``") + "`"
