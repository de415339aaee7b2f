"""Where the time of a refresh goes, over TPC-H: `make bench-tpch SCALE=1 CHANGE=0.001`.

All 22 queries are stream tables of one project. Batches of orders that come and go, and of updates
(`changes`), are written and taken in; then every query is refreshed by itself, one after the
other. In the end each is compared with PostgreSQL's own answer, and the same query is timed as
a full recompute on Spark and as a materialized view of PostgreSQL. The last line is one JSON
object; a wrong row fails the run.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

import headrace
from bench.tpch.changes import Shop
from bench.tpch.data import generated
from bench.tpch.equality import judge
from bench.tpch.figures import Seen
from bench.tpch.full import HOPELESS, copies, over_copies, over_files, timed
from bench.tpch.options import Options
from bench.tpch.postgres import refresh_times, settings, tune
from bench.tpch.queries import queries
from bench.tpch.report import summary
from bench.tpch.rounds import Rounds, engine_of, run_batch, tick, was_full, watch
from bench.tpch.schema import add_keys, create_tables, is_loaded, load
from headrace.errors import HeadraceError
from headrace.spark.launch import LOCAL
from headrace.spark.session import local_session
from tests.cluster.servers import standalone

MAX_BUFFER_MB = 100_000
# Two processes of one core each, beside a master and the driver.
CLUSTER = "standalone"
Sql = psycopg.Connection[Any]


@dataclass
class Progress:
    """Tells on stderr what is done, and how long each part took."""

    began: float = field(default_factory=time.perf_counter)
    parts: dict[str, float] = field(default_factory=dict)

    def say(self, words: str) -> None:
        sys.stderr.write(f"{time.perf_counter() - self.began:7.1f} s  {words}\n")

    def part(self, name: str) -> None:
        """What is done from now on belongs to a part; the one before has ended."""
        spent = time.perf_counter() - self.began - sum(self.parts.values())
        self.parts[name] = spent
        self.say(f"{name} done in {spent:.1f} s")


def measure(options: Options) -> dict[str, Any]:
    """One run; all that it saw."""
    wanted, progress = wanted_queries(options), Progress()
    with opened(options, progress) as (hr, sql, folder):
        return _measured(hr, sql, options, wanted, folder, progress)


def wanted_queries(options: Options) -> dict[str, str]:
    """The queries that the run is about, by name."""
    wanted = {n: q for n, q in queries().items() if not options.only or n in options.only}
    if options.only - set(wanted):
        raise SystemExit(f"unknown queries: {', '.join(sorted(options.only - set(wanted)))}")
    return wanted


@contextmanager
def opened(options: Options, progress: Progress) -> Iterator[tuple[headrace.Headrace, Sql, Path]]:
    """A project of its own whose database has the generated data, and a folder for the run."""
    with tempfile.TemporaryDirectory(prefix="headrace-tpch-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        home = options.project or folder / "home"
        tune(home)
        session = None
        with ExitStack() as stack:
            master = options.master
            if master == CLUSTER:
                master = stack.enter_context(standalone(folder / "cluster"))
            if options.heap is not None:
                session = local_session(master or LOCAL, memory=options.heap)
                stack.callback(session.stop)
            with (
                headrace.connect(home=home, spark=session or master) as hr,
                psycopg.connect(hr.dsn, autocommit=True) as sql,
            ):
                progress.part("start")
                if not is_loaded(sql):
                    data = generated(options.keep or folder, options.scale)
                    progress.part("generate")
                    create_tables(sql)
                    load(sql, data)
                    add_keys(sql)
                progress.part("load")
                hr.set("max_buffer_mb", MAX_BUFFER_MB)
                yield hr, sql, folder


def _measured(
    hr: headrace.Headrace,
    sql: Sql,
    options: Options,
    wanted: dict[str, str],
    folder: Path,
    progress: Progress,
) -> dict[str, Any]:
    runner = watch(hr)
    seen = _create(hr, options, wanted, progress)
    progress.part("create")
    shop = Shop.of(sql, options.change, options.rows)
    rounds = Rounds({name: one.taken for name, one in seen.items()})
    for number in range(options.batches):
        run_batch(hr, sql, runner, shop, number, rounds)
        if number == 0 and options.skip.isdisjoint({"equality", "first"}):
            _judge(hr, sql, wanted, seen, "after the first batch")
        progress.say(f"batch {number + 1} of {options.batches}")
    for name, one in seen.items():
        one.problems += rounds.problems.get(name, [])
        if options.mode == "DIFFERENTIAL" and any(map(was_full, one.taken)):
            one.problems.append("was computed in full although it is DIFFERENTIAL")
    progress.part("refresh")
    ticks = None if "tick" in options.skip else tick(hr)
    if "equality" not in options.skip:
        _judge(hr, sql, wanted, seen, "in the end")
        progress.part("compare")
    if "full" not in options.skip:
        _full(hr, sql, options, wanted, seen, folder / "copies", progress)
        progress.part("full")
    if "postgres" not in options.skip:
        sql.execute("VACUUM (ANALYZE)")
        for name, one in seen.items():
            one.postgres = refresh_times(sql, name, wanted[name], options.times)
            one.asked_postgres = True
        progress.part("postgres")
    return summary(options, shop, rounds, seen, ticks, settings(sql), hr, progress.parts)


def _create(
    hr: headrace.Headrace, options: Options, wanted: dict[str, str], progress: Progress
) -> dict[str, Seen]:
    seen = {}
    known = {table.name for table in engine_of(hr).catalog.state().stream_tables}
    for name, query in wanted.items():
        if name in known:
            seen[name] = Seen(None, options.warmup)
            continue
        started = time.perf_counter()
        try:
            hr.create_stream_table(name, query, refresh_mode=options.mode)
        except HeadraceError as error:
            progress.say(f"{name} refused: {error}")
            continue
        spent = time.perf_counter() - started
        seen[name] = Seen(spent, options.warmup)
        progress.say(f"{name} created in {spent:.1f} s")
    return seen


def _judge(
    hr: headrace.Headrace, sql: Sql, wanted: dict[str, str], seen: dict[str, Seen], when: str
) -> None:
    for name, one in seen.items():
        one.judged_by, differs = judge(hr, sql, name, wanted[name])
        if differs is not None:
            one.problems.append(f"{when}: {differs}")


def _full(
    hr: headrace.Headrace,
    sql: Sql,
    options: Options,
    wanted: dict[str, str],
    seen: dict[str, Seen],
    folder: Path,
    progress: Progress,
) -> None:
    session = copies(hr, folder)
    progress.say("copies written")
    for name, one in seen.items():
        counted = sql.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()
        assert counted is not None
        ways = {"copies": over_copies(session, wanted[name])}
        if "files" not in options.skip:
            ways["files"] = over_files(hr, name)
        for way, run in ways.items():
            best = min(
                (statistics.median(times) for times in one.full.values() if times), default=None
            )
            most = None if best is None else HOPELESS * best
            one.full[way], problem = timed(run, counted[0], options.times, most)
            if problem is not None:
                one.full_problems.append(f"over {way}: {problem}")
        progress.say(f"{name} computed in full")
