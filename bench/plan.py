"""How plans grow with their depth: `make bench-plan`.

One to six nested outer joins, and one to four nested aggregates over joins, over tables of three
rows, all of which change. For each: the time to bind, cut, differentiate and render it; the joins
and operators of Spark's physical plans; the time of one warm refresh. The rows cost nothing, so
what is measured is what a plan costs by its size.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

import headrace
from headrace.engine.steps import ComputeStage
from headrace.query import bind
from headrace.refresh.plan import decide, plan_refresh
from headrace.refresh.refresh import require_table
from headrace.relations.definition import InputSchema, define, inputs_of, new_definition, rules_of
from headrace.relations.rows import stored_schema
from headrace.render import PlanInput
from headrace.source.server import home_collation
from headrace.spark.run import Input

TABLES = 7
OUTER_JOINS, AGGREGATES = 6, 4
WARM_UP, ROUNDS = 12, 11
EVERYTHING = "everything"


def outer_joins(depth: int) -> str:
    """t0 ⟕ t1 ⟕ …, each on the row that the one before refers to."""
    shown = ", ".join(f"t{i}.v AS v{i}" for i in range(depth + 1))
    joins = "".join(f" LEFT JOIN t{i} ON t{i}.id = t{i - 1}.ref" for i in range(1, depth + 1))
    return f"SELECT t0.id, {shown} FROM t0{joins}"


def aggregates(depth: int) -> str:
    """Groups of a join with groups of a join …"""
    query = "SELECT t0.id AS k, t0.v AS x FROM t0"
    for i in range(1, depth + 1):
        query = (
            f"SELECT t{i}.ref AS k, count(*) + sum(q.x)::bigint AS x FROM ({query}) q"
            f" JOIN t{i} ON t{i}.id = q.k GROUP BY t{i}.ref"
        )
    return query


SHAPES = {
    **{f"outer_joins_{depth}": outer_joins(depth) for depth in range(1, OUTER_JOINS + 1)},
    **{f"aggregates_{depth}": aggregates(depth) for depth in range(1, AGGREGATES + 1)},
}


def fill(sql: psycopg.Connection[Any]) -> None:
    for i in range(TABLES):
        sql.execute(f"CREATE TABLE t{i} (id int PRIMARY KEY, ref int, v int)")
        sql.execute(f"INSERT INTO t{i} VALUES (1, 2, 1), (2, 3, 2), (3, 1, 3)")


def change(sql: psycopg.Connection[Any], number: int) -> None:
    """One row of every table; what it refers to comes and goes."""
    with sql.transaction():
        for i in range(TABLES):
            row = number % 3 + 1
            reference = "NULL" if number % 2 else str((row + i) % 3 + 1)
            sql.execute(f"UPDATE t{i} SET ref = {reference}, v = v + 1 WHERE id = {row}")


def steps_of(hr: headrace.Headrace, name: str) -> tuple[float, tuple[ComputeStage, ...]]:
    """How many milliseconds planning and rendering take, and the stages' queries."""
    state = hr._engine.catalog.state()  # noqa: SLF001
    table = require_table(state, "public", name)
    define(table, state)
    with hr._engine.database.session() as connection:  # noqa: SLF001
        rules = rules_of(home_collation(connection), table.options)
    inputs = inputs_of(table, state)
    schema = InputSchema.of(inputs, table.views, state, table.search_path, rules)
    changed = frozenset(table.inputs)
    times = []
    for number in range(ROUNDS):
        # Plans are remembered by their relation: under a name of its own it is made anew.
        relation = f"x{number}"
        started = time.perf_counter()
        definition = new_definition(relation, bind(table.query, schema), schema)
        renamed = replace(table, relation=relation)
        plan_refresh(renamed, definition, decide((renamed,), None, changed), changed)
        times.append((time.perf_counter() - started) * 1000)
    steps = plan_refresh(table, define(table, state), decide((table,), None, changed), changed)
    return statistics.median(times), tuple(s for s in steps if isinstance(s, ComputeStage))


def three_rows(hr: headrace.Headrace, wanted: PlanInput) -> Input:
    relation = hr._engine.catalog.state().relation(wanted.relation)  # noqa: SLF001
    schema = stored_schema(relation)
    rows = pa.table({f.name: pa.array([1, 2, 3]).cast(f.type) for f in schema}, schema)
    return Input(wanted.name, schema, rows=rows)


def physical_operators(hr: headrace.Headrace, step: ComputeStage) -> list[str]:
    """The lines of Spark's physical plan, one an operator."""
    inputs = [three_rows(hr, wanted) for wanted in step.inputs]
    text: str = hr._engine.runner.call(  # noqa: SLF001
        "tiny", inputs, lambda session: session.sql(f"EXPLAIN {step.sql}").collect()[0][0]
    )
    _, _, plan = text.partition("== Physical Plan ==")
    return [line for line in plan.splitlines() if line.strip()]


def measure(hr: headrace.Headrace, sql: psycopg.Connection[Any]) -> dict[str, dict[str, Any]]:
    every = " UNION ALL ".join(f"SELECT id, ref, v FROM t{i}" for i in range(TABLES))
    hr.create_stream_table(EVERYTHING, every)
    for name, query in SHAPES.items():
        hr.create_stream_table(name, query)
    times: dict[str, list[float]] = {name: [] for name in SHAPES}
    for number in range(WARM_UP + ROUNDS):
        sys.stderr.write(f"change {number + 1} of {WARM_UP + ROUNDS}\n")
        change(sql, number)
        # It takes in the change of all sources, so that the others find it there.
        hr.refresh(EVERYTHING)
        for name in SHAPES:
            started = time.perf_counter()
            refreshed = hr.refresh(name)
            times[name].append((time.perf_counter() - started) * 1000)
            if refreshed.mode != "DIFFERENTIAL":
                raise SystemExit(f"{name} was refreshed {refreshed.mode}")
    result = {}
    for name in SHAPES:
        sys.stderr.write(f"{name}\n")
        if not hr.verify(name).equal:
            raise SystemExit(f"{name} is not what its query says")
        planning, steps = steps_of(hr, name)
        operators = [line for step in steps for line in physical_operators(hr, step)]
        result[name] = {
            "planning_ms": round(planning, 1),
            "stages": len(steps),
            "operators": len(operators),
            "joins": sum("Join" in line for line in operators),
            "refresh_ms": round(statistics.median(times[name][WARM_UP:]), 1),
        }
    return result


def growth(result: dict[str, dict[str, Any]], shape: str, depth: int) -> dict[str, float]:
    """How much more the deepest costs than the shallowest; linear would be at most `depth`."""
    first, last = result[f"{shape}_1"], result[f"{shape}_{depth}"]
    return {
        figure: round(last[figure] / first[figure], 2)
        for figure in ("planning_ms", "operators", "refresh_ms")
    }


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as home,
        headrace.connect(home=Path(home)) as hr,
        psycopg.connect(hr.dsn, autocommit=True) as sql,
    ):
        fill(sql)
        result = measure(hr, sql)
    grown = {
        "outer_joins_6_over_1": growth(result, "outer_joins", OUTER_JOINS),
        "aggregates_4_over_1": growth(result, "aggregates", AGGREGATES),
    }
    sys.stdout.write(json.dumps({**result, **grown}) + "\n")


if __name__ == "__main__":
    main()
