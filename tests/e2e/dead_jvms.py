"""JVMs that die: `python -m tests.e2e.dead_jvms DSN HOME` runs a daemon and kills its Spark.

Each row of the matrix kills the JVM at one moment, then waits until every stream table serves again
what its query says. A line of JSON for each says how the calls to Spark ended that were under way,
what the daemon reported, and how many seconds it took.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import psycopg
from pyspark import SparkContext
from pyspark.core import context as pyspark_context

import headrace
from headrace.daemon import loop as service
from headrace.errors import HeadraceError
from headrace.ingest import small
from headrace.relations import compaction as relation_compaction
from headrace.spark.jvm import process_of_jvm
from headrace.spark.run import Runner
from headrace.store import compaction
from tests.daemon.running import PATIENCE, Running, eventually
from tests.e2e.oracle import assert_served

TABLES = 4
SLOW = "SELECT sum(a.id * b.id % 7) FROM range(1000000) a CROSS JOIN range(1000000) b"
REFRESH, MERGE = "headrace-refresh", "headrace-merge"

Sql = psycopg.Connection[Any]


def kill(pid: int) -> None:
    """Kill a process that this one has started, and wait until it has ended."""
    assert pid in {child.pid for child in psutil.Process().children(recursive=True)}
    psutil.Process(pid).send_signal(signal.SIGKILL)
    jvm = process_of_jvm()
    if jvm is not None and jvm.pid == pid:
        jvm.wait()


def jvm_pid() -> int:
    jvm = process_of_jvm()
    assert jvm is not None
    return jvm.pid


def kill_with_jobs(count: int) -> None:
    """Kill the JVM as soon as it runs so many jobs."""
    context = SparkContext._active_spark_context
    assert context is not None
    tracker = context.statusTracker()
    eventually(lambda: len(tracker.getActiveJobsIds()) >= count)
    kill(jvm_pid())


class Calls:
    """The calls to Spark of threads of one name, each held up by a slow query before its work.

    How they end is noted, also of those that come later.
    """

    def __init__(self, thread: str, count: int) -> None:
        self.ends: list[str] = []
        self._thread = thread
        self._count = self._left = count
        self._slow = threading.Semaphore(0)
        self._lock = threading.Lock()

    def kill_jvm(self) -> None:
        """Kill the JVM as soon as it runs the slow queries of all calls that are held up."""
        for _ in range(self._count):
            assert self._slow.acquire(timeout=PATIENCE)
        kill_with_jobs(self._count)

    @contextmanager
    def held_up(self) -> Iterator[None]:
        original = Runner._call

        def call(runner: Runner, lane: Any, work: Callable[[], Any], **options: Any) -> Any:
            if not threading.current_thread().name.startswith(self._thread):
                return original(runner, lane, work, **options)
            with self._lock:
                held, self._left = self._left > 0, self._left - 1

            def slowly() -> Any:
                self._slow.release()
                lane.session.sql(SLOW).toArrow()
                return work()

            try:
                result = original(runner, lane, slowly if held else work, **options)
            except HeadraceError as error:
                self.ends.append(error.code)
                raise
            self.ends.append("done")
            return result

        Runner._call = call  # type: ignore[method-assign]
        try:
            yield
        finally:
            Runner._call = original  # type: ignore[method-assign]


class Matrix:
    """The rows: each brings a change about, kills the JVM, and returns how calls ended."""

    def __init__(self, running: Running, sql: Sql) -> None:
        self.running = running
        self.engine = running.project._engine
        self.sql = sql
        self.round = 0

    def run(self, row: Callable[[Matrix], list[str]]) -> None:
        """Perform one row, and wait until everything is served again."""
        before, heard = jvm_pid(), len(self.running.said)
        began = time.monotonic()
        try:
            ends = row(self)
            self.until_served()
        except BaseException:
            faulthandler.dump_traceback()
            raise
        seconds = time.monotonic() - began
        project = self.running.project
        for number in range(TABLES):
            assert_served(project, self.sql, f"s{number}")
        failures = [one for one in self.running.said[heard:] if "Spark" in one]
        statuses = {one.status for one in project.status()}
        outcome = {
            "row": row.__name__,
            "ends": ends,
            "failures": failures,
            "replaced": jvm_pid() != before,
            "accumulator_servers": sum(
                "serve_forever" in thread.name for thread in threading.enumerate()
            ),
            "statuses": sorted(statuses),
            "seconds": round(seconds, 1),
        }
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()

    def write(self, tables: int = TABLES) -> None:
        """Change source tables, all in one transaction."""
        self.round += 1
        with self.sql.transaction():
            for number in range(tables):
                self.sql.execute(
                    f"INSERT INTO t{number} SELECT i %% 5, i + %s FROM generate_series(1, 20) i",
                    (self.round,),
                )
                self.sql.execute(f"UPDATE t{number} SET v = v + 1 WHERE k = %s", (self.round % 5,))

    def until_served(self) -> None:
        def is_served() -> bool:
            with self.sql.transaction():
                self.sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                return all(
                    self.sql.execute(f"SELECT k, n, v FROM s{number} ORDER BY k").fetchall()
                    == self.sql.execute(
                        f"SELECT k, count(*), sum(v) FROM t{number} GROUP BY k ORDER BY k"
                    ).fetchall()
                    for number in range(TABLES)
                )

        self.running.until(is_served)


def idle(matrix: Matrix) -> list[str]:
    kill(jvm_pid())
    calls = Calls(REFRESH, 0)
    with calls.held_up():
        matrix.write(1)
        matrix.until_served()
    return calls.ends


def one_refresh(matrix: Matrix) -> list[str]:
    return _refreshes(matrix, 1)


def four_refreshes(matrix: Matrix) -> list[str]:
    return _refreshes(matrix, 4)


def _refreshes(matrix: Matrix, count: int) -> list[str]:
    calls = Calls(REFRESH, count)
    with calls.held_up():
        matrix.write(count)
        calls.kill_jvm()
        matrix.until_served()
    return calls.ends


def copying(matrix: Matrix) -> list[str]:
    """The source was truncated, so it is copied again; executors read it when they are killed."""
    calls = Calls("", 0)
    small.SMALL_BYTES, before = 0, small.SMALL_BYTES
    try:
        with calls.held_up():
            with matrix.sql.transaction():
                matrix.sql.execute("TRUNCATE t0")
                matrix.sql.execute("INSERT INTO t0 SELECT i % 7, i FROM generate_series(1, 1000) i")
            kill_with_jobs(1)
            matrix.until_served()
    finally:
        small.SMALL_BYTES = before
    return calls.ends


def compacting(matrix: Matrix) -> list[str]:
    """Executors compact the files of a log, beside refreshes."""
    calls = Calls(MERGE, 1)
    relation_compaction.AT_ONCE_ROWS, before = 0, relation_compaction.AT_ONCE_ROWS
    matrix.running.project.set("collect_rows", "1")
    try:
        with calls.held_up():
            killing = threading.Thread(target=calls.kill_jvm)
            killing.start()
            while killing.is_alive():
                matrix.write(1)
                killing.join(0.2)
            matrix.until_served()
            # A sum that failed is tried again with the next change.
            while "done" not in calls.ends:
                matrix.write(1)
                matrix.until_served()
    finally:
        relation_compaction.AT_ONCE_ROWS = before
        matrix.running.project.set("collect_rows", "500000")
    return calls.ends[:2]


def starting(matrix: Matrix) -> list[str]:
    """Three starts in a row are cut short: the first Java process, the JVM, and its context."""
    original_launch, original_init = pyspark_context.launch_gateway, SparkContext._do_init
    killed: list[str] = []

    def launch(*arguments: Any, **options: Any) -> Any:
        if not killed:
            killed.append("process")
            threading.Thread(target=kill_first_java).start()
        gateway = original_launch(*arguments, **options)
        if killed == ["process"]:
            killed.append("gateway")
            kill(gateway.proc.pid)
        return gateway

    def initialise(*arguments: Any, **options: Any) -> None:
        original_init(*arguments, **options)
        if killed == ["process", "gateway"]:
            killed.append("context")
            kill(jvm_pid())

    kill(jvm_pid())
    pyspark_context.launch_gateway = launch
    SparkContext._do_init = initialise  # type: ignore[method-assign]
    try:
        matrix.write()
        matrix.until_served()
    finally:
        pyspark_context.launch_gateway = original_launch
        SparkContext._do_init = original_init  # type: ignore[method-assign]
    return killed


def kill_first_java() -> None:
    found: list[psutil.Process] = []

    def appears() -> bool:
        children = psutil.Process().children(recursive=True)
        found.extend(one for one in children if one.name() == "java")
        return bool(found)

    eventually(appears)
    kill(found[0].pid)


def stopped(matrix: Matrix) -> list[str]:
    """The application stops by itself, as after a fatal error; its JVM goes on."""
    context = SparkContext._active_spark_context
    assert context is not None
    context._jsc.sc().stop()
    calls = Calls(REFRESH, 0)
    with calls.held_up():
        matrix.write(1)
        matrix.until_served()
    return calls.ends


def is_warm() -> bool:
    """Whether the daemon's first query, which starts Spark, has ended."""
    return all(thread.name != "headrace-warm-up" for thread in threading.enumerate())


ROWS = (idle, one_refresh, four_refreshes, copying, compacting, starting, stopped)


def main(dsn: str, home: str) -> None:
    service.THOROUGH = 0.3
    relation_compaction.PAUSE_SECONDS = 0.0
    compaction.FEWEST_FILES = 3
    with (
        headrace.connect(dsn, home=home, spark="local[2]") as hr,
        psycopg.connect(dsn, autocommit=True) as sql,
    ):
        for number in range(TABLES):
            sql.execute(f"CREATE TABLE t{number} (k int, v int)")
            sql.execute(f"INSERT INTO t{number} SELECT i % 5, i FROM generate_series(1, 100) i")
        hr.create_stream_tables(
            {
                f"s{number}": {
                    "query": f"SELECT k, count(*) AS n, sum(v) AS v FROM t{number} GROUP BY k",
                    "schedule": "50ms",
                }
                for number in range(TABLES)
            }
        )
        hr.set("copy_parts", "1")
        with Running(hr) as running:
            matrix = Matrix(running, sql)
            matrix.write(1)
            matrix.until_served()
            running.until(is_warm)
            for row in ROWS:
                if len(sys.argv) < 4 or row.__name__ in sys.argv[3:]:
                    matrix.run(row)


if __name__ == "__main__":
    main(*sys.argv[1:3])
