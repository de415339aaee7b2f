"""What a recursion costs when little changes: `make bench-recursion`.

Reachability from the root of each of a thousand random trees, with a few edges across, is refreshed
after ten inserts and ten deletes, and recomputed in the same run. Then the worst case: in a dense
graph nearly every way leads over a deleted edge, so that a delete takes away almost all rows and
derives them again. What is maintained is compared with PostgreSQL's own answer in the end.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import psycopg

import headrace
from bench.floor import milliseconds
from headrace.catalog.records import Refresh

TREES, NODES, CROSS = 1_000, 100, 0.01
CHANGED = 10
DENSE_NODES, DENSE_EDGES = 60, 1_800
# The JVM compiles what runs often: Spark's planner is at its speed after some tens of queries.
WARM_UP, ROUNDS, RECOMPUTED = 10, 20, 3
DENSE_WARM_UP, DENSE_ROUNDS = 3, 5
Edge = tuple[int, int]
Sql = psycopg.Connection[Any]

SCHEMA = """
CREATE TABLE roots (tree int, node int);
CREATE TABLE tree_edges (parent int, child int);
CREATE TABLE dense_edges (parent int, child int);
"""
QUERIES = {
    "trees": "WITH RECURSIVE reach (tree, node) AS (SELECT tree, node FROM roots UNION"
    " SELECT r.tree, e.child FROM reach AS r JOIN tree_edges AS e ON e.parent = r.node)"
    " SELECT tree, node FROM reach",
    "dense": "WITH RECURSIVE reach (a, b) AS (SELECT parent, child FROM dense_edges UNION"
    " SELECT r.a, e.child FROM reach AS r JOIN dense_edges AS e ON e.parent = r.b)"
    " SELECT a, b FROM reach",
}


def forest(random: Random) -> list[Edge]:
    """Trees of random shape, node 0 of each its root, and some edges from any node to any other."""
    step = NODES + 1
    edges = [
        (tree * step + random.randrange(node), tree * step + node)
        for tree in range(TREES)
        for node in range(1, step)
    ]
    last = TREES * step
    across = round(len(edges) * CROSS)
    return edges + [(random.randrange(last), random.randrange(last)) for _ in range(across)]


def load(sql: Sql, random: Random) -> dict[str, list[Edge]]:
    """Fill the tables; their edges, by what is measured over them."""
    sql.execute(SCHEMA)
    roots = [(tree, tree * (NODES + 1)) for tree in range(TREES)]
    dense = [
        (random.randrange(DENSE_NODES), random.randrange(DENSE_NODES)) for _ in range(DENSE_EDGES)
    ]
    edges = {"trees": forest(random), "dense": dense}
    with sql.cursor() as cursor:
        for table, rows in (
            ("roots", roots),
            ("tree_edges", edges["trees"]),
            ("dense_edges", edges["dense"]),
        ):
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:  # type: ignore[arg-type]
                for row in rows:
                    copy.write_row(row)
    sql.execute("CREATE INDEX ON tree_edges (parent)")
    sql.execute("ANALYZE")
    return edges


def change(sql: Sql, random: Random, name: str, edges: list[Edge]) -> None:
    """Ten edges go, and ten others come."""
    table = {"trees": "tree_edges", "dense": "dense_edges"}[name]
    nodes = TREES * (NODES + 1) if name == "trees" else DENSE_NODES
    with sql.transaction(), sql.cursor() as cursor:
        for _ in range(CHANGED):
            gone = edges.pop(random.randrange(len(edges)))
            cursor.execute(
                f"DELETE FROM {table} WHERE ctid = (SELECT ctid FROM {table}"  # type: ignore[arg-type]
                " WHERE parent = %s AND child = %s LIMIT 1)",
                gone,
            )
        for _ in range(CHANGED):
            come = (random.randrange(nodes), random.randrange(nodes))
            edges.append(come)
            cursor.execute(f"INSERT INTO {table} VALUES (%s, %s)", come)  # type: ignore[arg-type]


def measure(
    hr: headrace.Headrace, sql: Sql, name: str, edges: list[Edge], warm_up: int, rounds: int
) -> dict[str, Any]:
    random = Random(f"changes of {name}")  # noqa: S311
    hr.create_stream_table(name, QUERIES[name], refresh_mode="DIFFERENTIAL")
    times: list[float] = []
    refreshes: list[Refresh] = []
    for number in range(warm_up + rounds):
        change(sql, random, name, edges)
        times.append(milliseconds(lambda: refreshes.append(hr.refresh(name))))
        sys.stderr.write(f"{name} {number}: {times[-1]:.0f} ms, {told(refreshes[-1])}\n")
    measured = refreshes[warm_up:]
    if {refresh.mode for refresh in measured} != {"DIFFERENTIAL"}:
        raise SystemExit(f"{name} was not maintained by its changes")
    full = []
    for _ in range(1 + RECOMPUTED):
        change(sql, random, name, edges)
        full.append(milliseconds(lambda: refreshes.append(hr.refresh(name, mode="FULL"))))
        sys.stderr.write(f"{name} anew: {full[-1]:.0f} ms, {told(refreshes[-1])}\n")
    incremental, anew = statistics.median(times[warm_up:]), statistics.median(full[1:])
    return {
        "rows": count(sql, name),
        "edges": len(edges),
        "refresh_ms": round(incremental, 1),
        "phases_ms": {
            phase: round(median(refresh.phases.get(phase, 0.0) for refresh in measured) * 1000, 1)
            for phase in measured[0].phases
        },
        "recompute_ms": round(anew, 1),
        "recompute_over_refresh": round(anew / incremental, 2),
        "spark_jobs": median(refresh.spark_jobs for refresh in measured),
        "iterations": median(refresh.iterations or 0 for refresh in measured),
        "round_ms": round(
            median(r.phases["compute"] * 1000 / max(r.iterations or 0, 1) for r in measured), 1
        ),
        "recompute_iterations": refreshes[-1].iterations,
        "rows_changed": median(r.rows_inserted + r.rows_deleted for r in measured),
        "equal_to_postgres": equal(sql, name),
    }


def median(numbers: Iterable[float]) -> float:
    return statistics.median(numbers)


def told(refresh: Refresh) -> str:
    return (
        f"{refresh.iterations} rounds, {refresh.spark_jobs} jobs,"
        f" +{refresh.rows_inserted} -{refresh.rows_deleted}"
    )


def count(sql: Sql, name: str) -> int:
    found = sql.execute(f"SELECT count(*) FROM {name}").fetchone()  # type: ignore[call-overload]
    return int(found[0])


def equal(sql: Sql, name: str) -> bool:
    served = Counter(sql.execute(f"SELECT * FROM {name}"))  # type: ignore[call-overload]
    return served == Counter(sql.execute(QUERIES[name]))  # type: ignore[call-overload]


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as home,
        headrace.connect(home=Path(home)) as hr,
        psycopg.connect(hr.dsn, autocommit=True) as sql,
    ):
        sys.stderr.write("loading\n")
        edges = load(sql, Random(1))  # noqa: S311
        result = {
            "trees": measure(hr, sql, "trees", edges["trees"], WARM_UP, ROUNDS),
            "dense": measure(hr, sql, "dense", edges["dense"], DENSE_WARM_UP, DENSE_ROUNDS),
        }
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
