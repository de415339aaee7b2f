"""What a written row costs the application, for each way of capture.

Statements run in procedures on the server, each in a transaction of its own, and commits do not
wait for the disk: neither the client's own time nor the disk's makes the ways look more alike than
they are.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import psycopg

from bench.capture_worlds import WAYS, World, width
from headrace.catalog.records import CaptureMode

VERBS = ("insert", "update")
# Scans of the primary key whatever the planner believes of a table that was empty just now.
OPTIONS = "-c synchronous_commit=off -c enable_seqscan=off"
LONGEST = 600.0
MANY = 8
# Statements after which a session has compiled and planned all that it runs.
WARM_UP = 10


@dataclass(frozen=True)
class Case:
    """Statements of so many rows, by so many writers at once, each `times` statements."""

    table: str
    writers: int
    size: int
    times: int

    @property
    def rows(self) -> int:
        return self.writers * self.times * self.size


@dataclass(frozen=True)
class Cost:
    """Of one row: seconds, and bytes that the server logged."""

    seconds: float
    logged: float


# By verb and way, one for each round.
Costs = dict[tuple[str, str], list[Cost]]


def cases(table: str, writers: int, rows: int) -> tuple[Case, ...]:
    """Single rows, and statements of a hundredth of `rows`, a tenth and all; enough of each.

    Many writers write small statements only: a large one is none of an application with so many.
    """
    sizes = sorted({max(1, rows // 100), max(1, rows // 10), rows} - {1})
    if writers > MANY:
        sizes = sizes[:1]
    single = Case(table, writers, 1, max(1, rows // 100))
    enough = 4 * rows // 10
    return (single, *(Case(table, writers, n, max(1, enough // n // writers)) for n in sizes))


def written(
    worlds: Sequence[World], group: Sequence[Case], rounds: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The costs of each case, and how they grow with the size of a statement.

    Sizes and ways are measured in turn, each round beginning with another way. The first round
    warms up; the largest size, which takes the longest, has half as many rounds, at least three.
    """
    found: dict[Case, Costs] = {case: {} for case in group}
    few = min(rounds, max(3, rounds // 2))
    for number in range(rounds + 1):
        turn = number % len(worlds)
        for case in group:
            if case is group[-1] and not 1 <= number <= few:
                continue
            for world in (*worlds[turn:], *worlds[:turn]):
                for verb, cost in _measure(world, case):
                    if number:
                        found[case].setdefault((verb, world.way), []).append(cost)
        for world in worlds:
            world.tidy()
    return [line for case in group for line in _lines(case, found[case])], list(_growth(found))


def _measure(world: World, case: Case) -> Iterator[tuple[str, Cost]]:
    """Insert rows into the empty table, then update them, in sessions that are warm."""
    logged = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                psycopg.connect(world.project.dsn, autocommit=True, options=OPTIONS)
            )
            for _ in range(case.writers)
        ]
        for number, writer in enumerate(writers):
            for verb in (*VERBS, "delete"):
                writer.execute(
                    f"CALL {verb}_{case.table}(%s, 1, %s)", (-WARM_UP * (number + 1), WARM_UP)
                )
        for verb in VERBS:
            before = world.one(logged)
            seconds = _run(writers, verb, case)
            size = world.one(logged) - before
            yield verb, Cost(seconds / case.rows, size / case.rows)
    _check(world, case)


def _run(writers: Sequence[psycopg.Connection[Any]], verb: str, case: Case) -> float:
    """Let all writers write at once; seconds until the last has done."""
    together = threading.Barrier(len(writers) + 1)
    failed: list[BaseException] = []

    def write(number: int) -> None:
        low = number * case.times * case.size
        together.wait(LONGEST)
        try:
            writers[number].execute(
                f"CALL {verb}_{case.table}(%s, %s, %s)", (low, case.size, case.times)
            )
        except psycopg.Error as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(len(writers))]
    for thread in threads:
        thread.start()
    together.wait(LONGEST)
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if failed:
        raise SystemExit(f"{verb} of {case} failed: {failed[0]}")
    return seconds


def _check(world: World, case: Case) -> None:
    """Every row was written and updated once, and triggers recorded all of it."""
    found = world.one(f"SELECT count(*) FILTER (WHERE n = 1) FROM {case.table}")
    buffered = world.empty(case.table)
    images = 3 * case.rows + 4 * WARM_UP * case.writers
    expected = images if WAYS[world.way] is CaptureMode.TRIGGER else 0
    if (found, buffered) != (case.rows, expected):
        raise SystemExit(f"{world.way}: {case} left {found} rows and {buffered} in the buffer")


def _lines(case: Case, costs: Costs) -> Iterator[dict[str, Any]]:
    for verb in VERBS:
        by_way = {way: costs[verb, way] for way in WAYS}
        times = {way: [one.seconds for one in all_] for way, all_ in by_way.items()}
        yield {
            "columns": width(case.table),
            "writers": case.writers,
            "statement": verb,
            "rows": case.size,
            "us_a_row": {w: round(1e6 * statistics.median(t), 2) for w, t in times.items()},
            "over_none": {
                way: round(_over(times[way], times["none"]), 2) for way in times if way != "none"
            },
            "logged_bytes_a_row": {
                way: round(statistics.median(one.logged for one in all_))
                for way, all_ in by_way.items()
            },
        }


def _growth(found: dict[Case, Costs]) -> Iterator[dict[str, Any]]:
    """A row's cost over that in the next smaller statement: 1 is linear."""
    several = [case for case in found if case.size > 1]
    for smaller, larger in pairwise(several):
        for verb in VERBS:
            yield {
                "columns": width(larger.table),
                "writers": larger.writers,
                "statement": verb,
                "rows": [smaller.size, larger.size],
                "growth": {
                    way: round(
                        _over(
                            [one.seconds for one in found[larger][verb, way]],
                            [one.seconds for one in found[smaller][verb, way]],
                        ),
                        2,
                    )
                    for way in WAYS
                },
            }


def _over(ones: Sequence[float], others: Sequence[float]) -> float:
    """The median of the ratios of rounds that both had."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=False))
