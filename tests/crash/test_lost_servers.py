"""Spark or PostgreSQL gone in the middle of things: the next refresh goes on by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.embedded import EmbeddedServer
from headrace.engine.steps import Step
from headrace.errors import Transient, Unavailable
from tests.e2e.oracle import assert_served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ROOT = Path(__file__).parents[2]

KILLED_JVM = """
import json, os, signal, sys, threading, time
import psutil, psycopg, headrace
from headrace.errors import HeadraceError
from headrace.spark.run import Runner

def jvms():
    children = psutil.Process().children(recursive=True)
    return [p for p in children if p.name() == "java"]

work = Runner._work

def work_without_jvm(*arguments):
    Runner._work = work
    for process in jvms():
        process.send_signal(signal.SIGKILL)
        process.wait()
    return work(*arguments)

found = {}
with headrace.connect(home=sys.argv[1]) as hr, psycopg.connect(hr.dsn, autocommit=True) as sql:
    sql.execute("CREATE TABLE t (k int, v int)")
    sql.execute("INSERT INTO t SELECT i % 5, i FROM generate_series(1, 100) i")
    hr.create_stream_table("s", "SELECT k, sum(v) AS v FROM t GROUP BY k")
    sql.execute("INSERT INTO t VALUES (2, 1)")
    hr.refresh("s")
    before = sql.execute("SELECT * FROM s ORDER BY k").fetchall()
    sql.execute("INSERT INTO t VALUES (1, 1000)")
    Runner._work = work_without_jvm
    try:
        hr.refresh("s")
    except HeadraceError as error:
        found["first"] = error.code
    found["kept"] = sql.execute("SELECT * FROM s ORDER BY k").fetchall() == before
    found["mode"] = hr.refresh("s").mode
    query = "SELECT k, sum(v) FROM t GROUP BY k ORDER BY k"
    found["exact"] = sql.execute("SELECT * FROM s ORDER BY k").fetchall() == (
        sql.execute(query).fetchall())
    found["verified"] = hr.verify("s", source=True).equal
print(json.dumps(found))
"""


def test_a_killed_jvm_is_replaced(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED_JVM, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=dict(os.environ),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "first": "spark-lost",
        "kept": True,
        "mode": "DIFFERENTIAL",
        "exact": True,
        "verified": True,
    }


def crash(dsn: str) -> None:
    """Kill one of the server's processes: PostgreSQL ends all others, recovers and goes on."""
    with (
        psycopg.connect(dsn, autocommit=True) as killed,
        psycopg.connect(dsn, autocommit=True) as ended,
    ):
        os.kill(killed.info.backend_pid, signal.SIGKILL)
        # Until the server itself has noticed and ends the others, it still takes new connections.
        with pytest.raises(psycopg.OperationalError):
            ended.execute("SELECT pg_sleep(60)")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("PostgreSQL did not come back")


@pytest.mark.parametrize("kind", ["PinCut", "Acknowledge", "Publish"])
def test_postgres_restarts_in_the_middle(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    query = "SELECT k, sum(v) AS v FROM t GROUP BY k"
    with (
        EmbeddedServer.open(tmp_path / "server") as server,
        headrace.connect(server.dsn, home=tmp_path / "home", spark=spark) as hr,
    ):
        with psycopg.connect(server.dsn, autocommit=True) as sql:
            sql.execute("CREATE TABLE t (k int, v int)")
            sql.execute("INSERT INTO t SELECT i % 5, i FROM generate_series(1, 100) i")
            hr.create_stream_table("s", query)
            sql.execute("INSERT INTO t VALUES (1, 1000)")

        def watch(when: str, step: Step) -> None:
            if when == "before" and type(step).__name__ == kind:
                hr._engine.watch = lambda when, step: None
                crash(server.dsn)

        hr._engine.watch = watch
        with pytest.raises((Transient, Unavailable)):
            hr.refresh("s")
        hr.refresh("s")
        with psycopg.connect(server.dsn, autocommit=True) as sql:
            assert_served(hr, sql, "s")
        assert hr.verify("s", source=True).equal
