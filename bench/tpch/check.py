"""Whether all 22 queries of TPC-H are kept right: `make bench-tpch` without a scale.

The queries are made as stream tables with refresh_mode DIFFERENTIAL over data of scale 0.01. After
each of ten batches every one is refreshed and compared with PostgreSQL's own answer. A stage that
is computed in full, or a wrong row, fails the run; so does a query whose result changed in fewer
than five batches. The last line is one JSON object. `ONLY=q1,q5` takes some of the queries.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

import headrace
from bench.tpch.aimed import BATCHES, batch
from bench.tpch.data import generate
from bench.tpch.equality import answers
from bench.tpch.queries import queries
from bench.tpch.schema import add_keys, create_tables, load
from fuzz.judge import Rows, difference
from headrace.catalog.records import StageRun
from headrace.errors import HeadraceError

SCALE = "0.01"
LEAST_CHANGES = 5


@dataclass
class Kept:
    """What was seen of one query."""

    create_seconds: float
    rows: Rows
    changes: int = 0
    seconds: list[float] = field(default_factory=list)
    modes: Counter[str] = field(default_factory=Counter)
    stages: list[tuple[StageRun, ...]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def create(
    hr: headrace.Headrace, sql: psycopg.Connection[Any], wanted: dict[str, str]
) -> tuple[dict[str, Kept], dict[str, str]]:
    kept: dict[str, Kept] = {}
    refused: dict[str, str] = {}
    for name, query in wanted.items():
        started = time.perf_counter()
        try:
            hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        except HeadraceError as error:
            refused[name] = f"{error.code}: {error.message}"
            sys.stderr.write(f"{name} refused: {refused[name]}\n")
            continue
        seconds = time.perf_counter() - started
        served, right = answers(hr, sql, name, query)
        kept[name] = Kept(seconds, right)
        if served != right:
            kept[name].problems.append(f"at first: {difference(served, right)}")
        sys.stderr.write(f"{name} created in {seconds:.1f} s\n")
    return kept, refused


def refresh(
    hr: headrace.Headrace,
    sql: psycopg.Connection[Any],
    name: str,
    query: str,
    one: Kept,
    number: int,
) -> None:
    started = time.perf_counter()
    done = hr.refresh(name)
    one.seconds.append(time.perf_counter() - started)
    one.modes[done.mode] += 1
    one.stages.append(done.stages)
    full = [stage.reason for stage in done.stages if stage.mode == "FULL"]
    if done.mode == "FULL" or full:
        one.problems.append(f"batch {number}: {done.mode}, {done.reason}; full stages: {full}")
    served, right = answers(hr, sql, name, query)
    if served != right:
        one.problems.append(f"batch {number}: {difference(served, right)}")
    one.changes += right != one.rows
    one.rows = right


def measure(hr: headrace.Headrace, folder: Path, wanted: dict[str, str]) -> dict[str, Any]:
    with psycopg.connect(hr.dsn, autocommit=True) as sql:
        create_tables(sql)
        rows = load(sql, folder)
        add_keys(sql)
        kept, refused = create(hr, sql, wanted)
        for number in range(BATCHES):
            with sql.transaction():
                for statement in batch(number):
                    sql.execute(statement.encode())
            for name, one in kept.items():
                refresh(hr, sql, name, wanted[name], one, number)
            sys.stderr.write(f"batch {number + 1} of {BATCHES}\n")
    for one in kept.values():
        if one.changes < LEAST_CHANGES:
            one.problems.append(f"the result changed in {one.changes} batches only")
    return {
        "scale": SCALE,
        "rows": rows,
        "batches": BATCHES,
        "refused": refused,
        "queries": {name: figures(one) for name, one in kept.items()},
        "failures": sum(len(one.problems) for one in kept.values()) + len(refused),
    }


def figures(one: Kept) -> dict[str, Any]:
    most = max(one.stages, key=len)
    return {
        "create_seconds": round(one.create_seconds, 2),
        "refresh_seconds": round(median(one.seconds), 2),
        "result_rows": sum(one.rows.values()),
        "changed": one.changes,
        "modes": dict(one.modes),
        "stages": [
            {
                "reason": stage.reason,
                "rows_read": _middle(one.stages, place, "rows_read"),
                "rows_written": _middle(one.stages, place, "rows_written"),
            }
            for place, stage in enumerate(most)
        ],
        "problems": one.problems,
    }


def _middle(runs: list[tuple[StageRun, ...]], place: int, figure: str) -> int:
    return int(median(getattr(run[place], figure) for run in runs if len(run) > place))


def show(result: dict[str, Any]) -> None:
    out = sys.stdout.write
    heads = f"{'query':6} {'create':>7} {'refresh':>8} {'rows':>6} {'changed':>8} {'modes':24}"
    out(f"{heads} rows read a stage\n")
    for name, one in result["queries"].items():
        modes = ", ".join(f"{mode} {n}" for mode, n in one["modes"].items())
        read = ", ".join(str(stage["rows_read"]) for stage in one["stages"])
        out(
            f"{name:6} {one['create_seconds']:7.2f} {one['refresh_seconds']:8.2f}"
            f" {one['result_rows']:6} {one['changed']:8} {modes:24} {read}\n"
        )
        for problem in one["problems"]:
            out(f"       {problem}\n")
    for name, reason in result["refused"].items():
        out(f"{name:6} refused: {reason}\n")


def check(only: frozenset[str]) -> None:
    """Run the ten batches and exit; `only` are names of queries, all if empty."""
    wanted = {name: q for name, q in queries().items() if not only or name in only}
    with tempfile.TemporaryDirectory(prefix="headrace-tpch-", ignore_cleanup_errors=True) as home:
        folder = Path(home)
        generate(folder / "data", SCALE)
        with headrace.connect(home=folder / "home") as hr:
            result = measure(hr, folder / "data", wanted)
    show(result)
    sys.stdout.write(json.dumps(result) + "\n")
    sys.exit(1 if result["failures"] else 0)
