"""A JVM that died under us: noticed, and forgotten so that the next use starts another."""

from __future__ import annotations

from contextlib import suppress
from subprocess import Popen
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answers(session: SparkSession) -> bool:
    """Whether whatever is behind a session still answers for it."""
    try:
        session.conf.get("spark.sql.ansi.enabled")
        if hasattr(session, "_jsparkSession"):
            # A context that failed stops by itself; its JVM goes on, and answers.
            return not session.sparkContext._jsc.sc().isStopped()  # noqa: SLF001
    except Exception:  # noqa: BLE001  it may fail in any way that a broken connection can
        return False
    return True


def process_of_jvm() -> Popen[bytes] | None:
    """The process of the JVM that PySpark started last; None if there is none."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001
    # Asked for an attribute that it lacks, a gateway would ask the JVM.
    return None if gateway is None else vars(gateway).get("proc")


def jvm_answers() -> bool:
    """Whether PySpark has a JVM that answers."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        return False
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except Exception:  # noqa: BLE001  it may fail in any way that a broken connection can
        return False
    return True


def forget_jvm() -> None:
    """Make PySpark forget the JVM of this process, which is dead or of no use any more.

    PySpark starts one JVM in the life of a process, keeps it in private fields, and offers no
    other way to release it. A JVM that still runs ends when its input does.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        process = process_of_jvm()
        with suppress(Exception):
            gateway.shutdown()
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
    context = SparkContext._active_spark_context  # noqa: SLF001
    # Its thread and socket would stay for as long as this process.
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        with suppress(Exception):
            server.shutdown()
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001
