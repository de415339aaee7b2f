"""What a daemon costs and how fresh it keeps tables: `make bench-daemon`.

One run measures three things. Idle: the share of a core that Python, the JVM and PostgreSQL use
each while a hundred stream tables with a schedule of a second have nothing to do. Freshness: the
time from a commit to its being served, for an aggregate under fifty commits a second. Graphs: the
time until everything is served of a chain of ten, a diamond of four and twenty tables side by side,
over that of a single table. `ARGS='idle=10 rounds=3'` makes it shorter; `idle=0`, `load=0` or
`rounds=0` leaves out one of them.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

import headrace
from headrace.embedded.cluster import ClusterPaths

# Seconds and numbers; each can be given as an argument.
SIZES = {"idle": 60, "tables": 100, "load": 30, "commits": 50, "rounds": 20, "warm_up": 30}
LONGEST = 600.0
TICKS = os.sysconf("SC_CLK_TCK")
SOURCE = "SELECT k, max(at) AS at, count(*) AS n FROM t GROUP BY k"
MARKS = itertools.count(1)

Sql = psycopg.Connection[Any]


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def cpu_seconds(pid: int) -> float:
    """What a process has used, with its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def children(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listed.read_text().split():
            yield from children(int(child))


def used(home: Path) -> dict[str, float]:
    """Seconds of CPU used so far by Python, the JVM and PostgreSQL."""
    server = json.loads(ClusterPaths(home).server_lock.read_text())["pid"]
    java = [p for p in children(os.getpid()) if _is_java(p)]
    return {
        "python": time.process_time(),
        "jvm": sum(map(cpu_seconds, java)),
        "postgres": sum(map(cpu_seconds, children(server))),
    }


def _is_java(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_text().strip() == "java"


@contextmanager
def serving(hr: headrace.Headrace) -> Iterator[None]:
    """A daemon in a thread of this process."""
    serves = threading.Event()
    daemon = hr.daemon(lambda said: serves.set())
    thread = threading.Thread(target=daemon.run, args=(LONGEST,))
    thread.start()
    serves.wait(LONGEST)
    try:
        yield
    finally:
        daemon.stop()
        thread.join()


@contextmanager
def tables(hr: headrace.Headrace, queries: dict[str, str], schedule: str) -> Iterator[list[str]]:
    """Stream tables that exist for a while, each after those that it reads."""
    hr.create_stream_tables(
        {name: {"query": query, "schedule": schedule} for name, query in queries.items()}
    )
    yield list(queries)
    for name in reversed(queries):
        hr.drop_stream_table(name)


def write(sql: Sql) -> int:
    """Commit one row that carries a mark; the mark."""
    mark = next(MARKS)
    sql.execute("INSERT INTO t VALUES (%s, %s)", (mark % 10, mark))
    return mark


def served(sql: Sql, names: list[str]) -> int:
    """The mark that all of these tables show."""
    parts = " UNION ALL ".join(f"SELECT max(at) AS at FROM {name}" for name in names)
    row = sql.execute(f"SELECT coalesce(min(at), 0) FROM ({parts}) x").fetchone()
    assert row is not None
    return int(row[0])


def wait_for(sql: Sql, names: list[str], mark: int) -> float:
    """Wait until these tables show a mark; the time when they did."""
    deadline = time.perf_counter() + LONGEST
    while served(sql, names) < mark:
        if time.perf_counter() > deadline:
            raise SystemExit(f"{names} never showed what was committed")
        time.sleep(0.002 * len(names))
    return time.perf_counter()


def idle(hr: headrace.Headrace, sql: Sql, home: Path, sizes: dict[str, int]) -> dict[str, Any]:
    """Nothing happens: who uses how much of a core, in percent."""
    queries = {f"idle_{i}": SOURCE for i in range(sizes["tables"])}
    runner = hr._engine.runner  # noqa: SLF001
    with tables(hr, queries, "1s") as names, serving(hr):
        wait_for(sql, names, write(sql))
        time.sleep(5)
        jobs, before, began = runner.jobs, used(home), time.perf_counter()
        time.sleep(sizes["idle"])
        seconds, after = time.perf_counter() - began, used(home)
        jobs = runner.jobs - jobs
    shares = {who: round(100 * (after[who] - before[who]) / seconds, 2) for who in after}
    return {"tables": len(names), "percent_of_a_core": shares, "spark_jobs": jobs}


def freshness(hr: headrace.Headrace, sql: Sql, sizes: dict[str, int]) -> dict[str, Any]:
    """Milliseconds from commit to served, under load."""
    committed: dict[int, float] = {}
    seen: list[tuple[float, int]] = []
    stop = threading.Event()

    def watch() -> None:
        with psycopg.connect(hr.dsn, autocommit=True) as reader:
            while not stop.is_set():
                mark = served(reader, ["fresh"])
                if not seen or mark > seen[-1][1]:
                    seen.append((time.perf_counter(), mark))
                time.sleep(0.002)

    with tables(hr, {"fresh": SOURCE}, "100ms") as names, serving(hr):
        for _ in range(sizes["warm_up"]):
            wait_for(sql, names, write(sql))
        watcher = threading.Thread(target=watch)
        watcher.start()
        began, count = time.perf_counter(), sizes["load"] * sizes["commits"]
        for number in range(count):
            time.sleep(max(0.0, began + number / sizes["commits"] - time.perf_counter()))
            mark = write(sql)
            committed[mark] = time.perf_counter()
        took = time.perf_counter() - began
        wait_for(sql, names, mark)
        time.sleep(0.1)
        stop.set()
        watcher.join()
    late = sorted(1000 * (_first(seen, mark) - at) for mark, at in committed.items())
    return {
        "commits_per_second": round(count / took, 1),
        "median_ms": round(statistics.median(late)),
        "p95_ms": round(late[int(len(late) * 0.95)]),
        "epochs": len(seen),
    }


def _first(seen: list[tuple[float, int]], mark: int) -> float:
    """When a mark was seen first."""
    return next(at for at, shown in seen if shown >= mark)


def graphs() -> dict[str, dict[str, str]]:
    """Graphs of stream tables over one source, by name."""
    chain = {"chain_1": SOURCE}
    chain |= {f"chain_{i}": f"SELECT k, at, n FROM chain_{i - 1}" for i in range(2, 11)}
    return {
        "single": {"single": SOURCE},
        "chain_of_10": chain,
        "diamond_of_4": {
            "top": "SELECT k, at FROM t",
            "lefts": "SELECT k, max(at) AS at FROM top GROUP BY k",
            "rights": "SELECT k, count(*) AS n FROM top GROUP BY k",
            "bottom": "SELECT l.k, l.at, r.n FROM lefts l JOIN rights r ON l.k = r.k",
        },
        "independent_20": {f"apart_{i}": SOURCE for i in range(20)},
    }


def latency(
    hr: headrace.Headrace, sql: Sql, queries: dict[str, str], sizes: dict[str, int]
) -> float:
    """Milliseconds from a commit until all of these tables show it, at the median."""
    times = []
    with tables(hr, queries, "10ms") as names, serving(hr):
        showing = [name for name in names if name != "rights"]
        for _ in range(sizes["warm_up"] + sizes["rounds"]):
            mark = write(sql)
            began = time.perf_counter()
            times.append(1000 * (wait_for(sql, showing, mark) - began))
            time.sleep(0.1)
    return statistics.median(times[sizes["warm_up"] :])


def over_single(hr: headrace.Headrace, sql: Sql, sizes: dict[str, int]) -> dict[str, float]:
    """The time of each graph, and over that of a single table."""
    times = {}
    for name, queries in graphs().items():
        say(f"measuring {name}")
        times[name] = latency(hr, sql, queries, sizes)
    found = {f"{name}_ms": round(taken) for name, taken in times.items()}
    others = {f"{n}_over_single": round(t / times["single"], 2) for n, t in times.items()}
    return found | {name: share for name, share in others.items() if name != "single_over_single"}


def main(arguments: list[str]) -> None:
    sizes = dict(SIZES)
    for name, _, value in (one.partition("=") for one in arguments):
        if name not in sizes:
            raise SystemExit(f"{name} is none of {', '.join(sizes)}")
        sizes[name] = int(value)
    result: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as folder,
        headrace.connect(home=Path(folder)) as hr,
        psycopg.connect(hr.dsn, autocommit=True) as sql,
    ):
        sql.execute("CREATE TABLE t (k int, at bigint)")
        sql.execute("INSERT INTO t SELECT i % 10, 0 FROM generate_series(1, 100000) i")
        if sizes["load"]:
            say("measuring freshness under load")
            result["freshness"] = freshness(hr, sql, sizes)
        if sizes["rounds"]:
            result["graphs"] = over_single(hr, sql, sizes)
        if sizes["idle"]:
            say("measuring idle")
            result["idle"] = idle(hr, sql, Path(folder), sizes)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
