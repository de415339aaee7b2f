"""A JVM that died under us: noticed, and forgotten so that the next use starts another."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answers(session: SparkSession) -> bool:
    """Whether whatever is behind a session still answers for it."""
    try:
        session.conf.get("spark.sql.ansi.enabled")
    except Exception:  # noqa: BLE001  it may fail in any way that a broken connection can
        return False
    return True


def forget_jvm() -> None:
    """Make PySpark forget the JVM of this process, which is dead.

    PySpark starts one JVM in the life of a process, keeps it in private fields, and offers no
    other way to let go of it.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001
