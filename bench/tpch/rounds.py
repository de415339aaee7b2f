"""Batch after batch: changes are written, taken in, and every query is refreshed by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

import headrace
from bench.tpch.changes import Shop, apply
from bench.tpch.spans import Totals, WatchedRunner, totals
from headrace.catalog.records import Refresh
from headrace.engine import Engine
from headrace.errors import HeadraceError
from headrace.graph.dependencies import ordered
from headrace.ingest.ingest import ingest
from headrace.refresh.run import RefreshRun
from headrace.relations.compaction import compact

TICKS = 20

Sql = psycopg.Connection[Any]


@dataclass(frozen=True)
class Taken:
    """One refresh: how long it took, what it says of itself, and what Spark did meanwhile."""

    seconds: float
    refresh: Refresh
    split: dict[str, float]
    spark: Totals
    calls: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Rounds:
    """What was measured: of every query its refreshes, of every batch how it was taken in."""

    refreshes: dict[str, list[Taken]] = field(default_factory=dict)
    written: list[dict[str, int]] = field(default_factory=list)
    ingest_seconds: list[float] = field(default_factory=list)
    problems: dict[str, list[str]] = field(default_factory=dict)


def watch(hr: headrace.Headrace) -> WatchedRunner:
    """Have the project's queries run where they can be watched; before the first of them."""
    runner = WatchedRunner(hr._spark)  # noqa: SLF001
    engine_of(hr).runner = runner
    return runner


def engine_of(hr: headrace.Headrace) -> Engine:
    return hr._engine  # noqa: SLF001


def run_batch(
    hr: headrace.Headrace, sql: Sql, runner: WatchedRunner, shop: Shop, number: int, to: Rounds
) -> None:
    """Write a batch and take it in, then refresh every query that `to` has a place for."""
    to.written.append(apply(sql, shop, number))
    to.ingest_seconds.append(seconds(lambda: take_in(engine_of(hr))))
    for name, taken in to.refreshes.items():
        try:
            taken.append(refreshed(hr, runner, name))
        except HeadraceError as error:
            to.problems.setdefault(name, []).append(f"batch {number}: {error}")


def take_in(engine: Engine) -> None:
    """Take in what is new, and sum up logs as a daemon does after it."""
    with engine.writing() as lease:
        before = engine.catalog.state()
        after = ingest(engine, before, lease.fence)
        moved = [
            source.relation
            for source in after.sources
            if after.relation(source.relation).pin != before.relation(source.relation).pin
        ]
        compact(engine, moved, lease.fence)


def refreshed(hr: headrace.Headrace, runner: WatchedRunner, name: str) -> Taken:
    session = hr._spark.profile("tiny")  # noqa: SLF001
    before = totals(session)
    with runner.watched() as spans:
        started = time.perf_counter()
        refresh = hr.refresh(name)
        spent = time.perf_counter() - started
    after = totals(session)
    spark = {
        "register": sum(span.register for span in spans),
        "spark_plan": sum(span.analyse + span.planned() for span in spans),
        "spark_run": sum(span.run() for span in spans),
    }
    phases = {name: took for name, took in refresh.phases.items() if name != "compute"}
    split = {**{n: phases.pop(n, 0.0) for n in ("cut", "plan", "read")}, **spark, **phases}
    split["rest"] = spent - sum(split.values())
    calls = [span.described() for span in spans]
    return Taken(spent, refresh, split, after.since(before), calls)


def was_full(taken: Taken) -> bool:
    """Whether the refresh, or a stage of it, was computed in full."""
    return "FULL" in {taken.refresh.mode, *(stage.mode for stage in taken.refresh.stages)}


def tick(hr: headrace.Headrace) -> tuple[list[float], int]:
    """Look at all tables while there is nothing to do: seconds of each look, Spark jobs of all."""
    engine = engine_of(hr)

    def look() -> None:
        with engine.writing() as lease:
            state = ingest(engine, engine.catalog.state(), lease.fence)
            sweep = RefreshRun(engine, state, ordered(state.stream_tables), lease.fence)
            sweep.run()
            if sweep.advanced:
                raise SystemExit("something was refreshed although nothing had changed")

    jobs = engine.runner.jobs
    return [seconds(look) for _ in range(TICKS)], engine.runner.jobs - jobs


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
