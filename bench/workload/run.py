"""Create the queries as stream tables, apply batches, refresh, and compare with PostgreSQL."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

import headrace
from bench.workload.answers import answers
from bench.workload.cpu import cpu_seconds
from fuzz.judge import Rows, difference
from headrace.catalog.records import Refresh
from headrace.errors import HeadraceError
from headrace.ingest.ingest import ingest
from headrace.relations.definition import define

Sql = psycopg.Connection[Any]


@dataclass(frozen=True)
class Workload:
    """Queries by name, and how the tables that they read are filled and changed."""

    name: str
    queries: dict[str, str]
    load: Callable[[Sql], dict[str, int]]
    change: Callable[[Sql, int], dict[str, int]]


@dataclass(frozen=True)
class Took:
    """Seconds of one piece of work: on the clock, and of CPU."""

    wall: float
    cpu: float


@dataclass
class Seen:
    """What was seen of one query; `problems` is empty if all was right."""

    refused: str | None = None
    created: Took | None = None
    stages: int = 0
    refreshes: list[tuple[Took, Refresh]] = field(default_factory=list)
    rows: Rows = field(default_factory=Rows)
    changes: int = 0
    problems: list[str] = field(default_factory=list)


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def timed(work: Callable[[], Any]) -> tuple[Took, Any]:
    """Return what some work took, and its result."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = work()
    return Took(time.perf_counter() - wall, cpu_seconds() - cpu), result


def run(
    hr: headrace.Headrace, sql: Sql, workload: Workload, batches: int, seen: dict[str, Seen]
) -> None:
    """Run a workload; `seen` gets what was seen of every query, also of a run that is stopped."""
    say(f"loaded {sum(workload.load(sql).values())} rows")
    for place, (name, query) in enumerate(workload.queries.items(), 1):
        seen[name] = create(hr, sql, name, query)
        say(f"{place}/{len(workload.queries)} {name} {_created(seen[name])}")
    for number in range(batches):
        written = workload.change(sql, number)
        took, _ = timed(lambda: take_in(hr))
        rows = sum(written.values())
        say(f"batch {number + 1}: {rows} rows of {len(written)} tables in {took.wall:.1f} s")
        for name, query in workload.queries.items():
            if seen[name].created is not None:
                refresh(hr, sql, name, query, seen[name], number + 1)


def create(hr: headrace.Headrace, sql: Sql, name: str, query: str) -> Seen:
    """Create a stream table and compare its first rows."""
    seen = Seen()
    try:
        made, _ = timed(lambda: hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL"))
        seen.created = made
    except HeadraceError as error:
        seen.refused = " ".join(f"{error.code}: {error}".split())
        return seen
    except Exception as error:  # noqa: BLE001 - the other queries go on
        seen.refused = f"{type(error).__name__}: {_first_line(error)}"
        return seen
    state = hr._engine.catalog.state()  # noqa: SLF001
    table = state.stream_table("public", name)
    assert table is not None
    seen.stages = len(define(table, state).stages)
    _compare(hr, sql, name, query, seen, "at first")
    return seen


def refresh(
    hr: headrace.Headrace, sql: Sql, name: str, query: str, seen: Seen, number: int
) -> None:
    """Refresh a stream table by itself after a batch, and compare it."""
    before = len(seen.problems)
    try:
        took, done = timed(lambda: hr.refresh(name))
    except Exception as error:  # noqa: BLE001 - the other queries go on
        code = getattr(error, "code", type(error).__name__)
        seen.problems.append(f"batch {number}: {code}: {_first_line(error)}")
        say(f"  {name} {seen.problems[-1]}")
        return
    seen.refreshes.append((took, done))
    full = [stage.reason for stage in done.stages if stage.mode == "FULL"]
    if done.mode == "FULL" or full:
        seen.problems.append(f"batch {number}: {done.mode}, {done.reason}; full stages: {full}")
    last = seen.rows
    _compare(hr, sql, name, query, seen, f"batch {number}")
    seen.changes += seen.rows != last
    say(
        f"  {name} {done.mode} {took.wall:.2f} s, {took.cpu:.2f} s of CPU, {len(done.stages)} of"
        f" {seen.stages} stages, {done.spark_jobs} jobs, {sum(seen.rows.values())} rows,"
        f" {'equal' if len(seen.problems) == before else seen.problems[-1]}"
    )


def take_in(hr: headrace.Headrace) -> None:
    """Take in what was written, so that refreshes are measured without it."""
    engine = hr._engine  # noqa: SLF001
    with engine.writing() as lease:
        ingest(engine, engine.catalog.state(), lease.fence)


def _compare(hr: headrace.Headrace, sql: Sql, name: str, query: str, seen: Seen, when: str) -> None:
    try:
        served, right = answers(hr, sql, name, query)
    except psycopg.Error as error:
        seen.problems.append(f"{when}: PostgreSQL: {_first_line(error)}")
        return
    if served != right:
        seen.problems.append(f"{when}: {difference(served, right)}")
    seen.rows = right


def _created(seen: Seen) -> str:
    if seen.created is None:
        return f"refused: {seen.refused}"
    took = f"created in {seen.created.wall:.1f} s, {seen.created.cpu:.1f} s of CPU"
    outcome = seen.problems[-1] if seen.problems else "equal"
    return f"{took}, {seen.stages} stages, {sum(seen.rows.values())} rows, {outcome}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
