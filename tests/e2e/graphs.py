"""Random graphs side by side, recursive queries over them, and what follows in plain Python.

Every table has a column `g`, the number of the graph that a row belongs to. Queries name tables by
placeholders, so that one graph can also stand alone in tables of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import psycopg

Row = tuple[Any, ...]
Rows = frozenset[Row]
Sql = psycopg.Connection[Any]

SCHEMA = """
CREATE TABLE {edges} (g int NOT NULL, a int, b int, n int NOT NULL);
CREATE TABLE {blocked} (g int NOT NULL, a int, b int);
CREATE TABLE {trusted} (g int NOT NULL, a int, b int);
"""
FREE = (
    "NOT EXISTS (SELECT FROM {blocked} AS x WHERE x.g = e.g AND x.a = e.a AND x.b = e.b)"
)  # fmt: skip
STEP = "JOIN {edges} AS e ON e.g = r.g AND e.a = r.b"


def closure(step: str, base: str = "SELECT g, a, b FROM {edges}") -> str:
    return f"WITH RECURSIVE r AS ({base} UNION SELECT r.g, r.a, e.b FROM r {step}) SELECT * FROM r"


RECURSIVE: Mapping[str, str] = {
    "reach": closure(STEP),
    "unblocked": closure(f"{STEP} WHERE {FREE}"),
    # The degree of a node is an aggregate of the edges that are walked: one more may close a way.
    "narrow": closure(
        f"{STEP} JOIN (SELECT g, a, count(*) AS ways FROM {{edges}} GROUP BY g, a) AS d"
        " ON d.g = r.g AND d.a = r.b WHERE d.ways < 3"
    ),
    "parts": (
        "WITH RECURSIVE r AS (SELECT g, b, n, ARRAY[a, b] AS path FROM {edges} WHERE a = 0"
        " UNION ALL SELECT r.g, e.b, r.n * e.n, r.path || e.b FROM r"
        f" {STEP} WHERE e.b <> ALL (r.path)) SELECT g, b, n, path FROM r"
    ),
    "generation": (
        "WITH RECURSIVE r AS (SELECT x.g, x.b AS a, y.b FROM {edges} AS x JOIN {edges} AS y"
        " ON x.g = y.g AND x.a = y.a WHERE x.b <> y.b UNION SELECT x.g, x.b, y.b FROM r"
        " JOIN {edges} AS x ON x.g = r.g AND x.a = r.a"
        " JOIN {edges} AS y ON y.g = r.g AND y.a = r.b) SELECT * FROM r"
    ),
}
"""Queries that PostgreSQL answers itself."""


@dataclass(frozen=True)
class Cycle:
    """Stream tables that read each other, and the rows of all of them, from those of the tables."""

    queries: Mapping[str, str]
    least: Callable[[Mapping[str, Iterable[Row]]], dict[str, Rows]]


def composed(left: Rows, right: Iterable[Row]) -> Rows:
    """left(g, a, b), right(g, b, c) → (g, a, c); NULL meets nothing."""
    following: dict[Row, set[Any]] = {}
    for g, a, b in right:
        following.setdefault((g, a), set()).add(b)
    return frozenset(
        (g, a, c) for g, a, b in left if b is not None for c in following.get((g, b), ())
    )


def fixed_point(
    names: Iterable[str], step: Callable[[Mapping[str, Rows]], dict[str, Rows]]
) -> dict[str, Rows]:
    """The bodies over each other's rows, beginning with none, until nothing changes."""
    rows: dict[str, Rows] = dict.fromkeys(names, frozenset())
    while (following := step(rows)) != rows:
        rows = following
    return rows


def lengths(over: Mapping[str, str]) -> Cycle:
    """Each table has the ways of the one before, one step over its own table further.

    The first also begins: with the edges.
    """
    first, *_, last = over
    before = dict(zip(over, (last, *over), strict=False))
    queries = {
        name: f"SELECT DISTINCT r.g, r.a, e.b FROM {{{before[name]}}} AS r"
        f" JOIN {{{table}}} AS e ON e.g = r.g AND e.a = r.b"
        for name, table in over.items()
    }
    further = queries[first].replace("DISTINCT ", "")
    queries[first] = f"SELECT g, a, b FROM {{edges}} UNION {further}"

    def least(tables: Mapping[str, Iterable[Row]]) -> dict[str, Rows]:
        rows_of = {name: frozenset(row[:3] for row in rows) for name, rows in tables.items()}

        def step(rows: Mapping[str, Rows]) -> dict[str, Rows]:
            found = {name: composed(rows[before[name]], rows_of[over[name]]) for name in over}
            return {**found, first: found[first] | rows_of["edges"]}

        return fixed_point(over, step)

    return Cycle(queries, least)


def free_ways(tables: Mapping[str, Iterable[Row]]) -> dict[str, Rows]:
    """Ways over edges that are not blocked: to NOT EXISTS a NULL equals nothing, to EXCEPT NULL."""
    edges = frozenset(row[:3] for row in tables["edges"])
    blocked = frozenset(tables["blocked"])
    begun = edges - {row for row in blocked if None not in row}
    further = (edges - blocked) | frozenset(tables["trusted"])

    def step(rows: Mapping[str, Rows]) -> dict[str, Rows]:
        return {
            "ways": begun | rows["longer"],
            "longer": composed(rows["ways"], further),
        }

    return fixed_point(("ways", "longer"), step)


CYCLES: Mapping[str, Cycle] = {
    "two": lengths({"odd": "edges", "even": "edges"}),
    "three": lengths({"first": "edges", "second": "trusted", "third": "edges"}),
    "free": Cycle(
        {
            "ways": f"SELECT g, a, b FROM {{edges}} AS e WHERE {FREE}"
            " UNION ALL SELECT g, a, b FROM {longer}",
            "longer": "SELECT r.g, r.a, e.b FROM {ways} AS r JOIN (SELECT g, a, b FROM {edges}"
            " EXCEPT SELECT g, a, b FROM {blocked}) AS e ON e.g = r.g AND e.a = r.b"
            " UNION ALL SELECT r.g, r.a, t.b FROM {ways} AS r"
            " JOIN {trusted} AS t ON t.g = r.g AND t.a = r.b",
        },
        free_ways,
    ),
}


@dataclass(frozen=True)
class Graphs:
    """The tables of some graphs, whose names begin with `prefix`, changed at random."""

    random: Random
    prefix: str = ""
    numbers: range = range(200)
    nodes: tuple[int, int] = (3, 8)

    def named(self, text: str) -> str:
        """The text with the names of tables of these graphs."""
        members = [name for cycle in CYCLES.values() for name in cycle.queries]
        names = ("edges", "blocked", "trusted", *members)
        return text.format_map({name: f"{self.prefix}{name}" for name in names})

    def load(self, sql: Sql) -> None:
        sql.execute(self.named(SCHEMA))
        for g in self.numbers:
            size = self.random.randint(*self.nodes)
            for _ in range(round(size * self.random.uniform(0.9, 1.5))):
                self._insert(sql, "edges", g, size)
            for table in ("blocked", "trusted", "trusted"):
                self._insert(sql, table, g, size)

    def change(self, sql: Sql) -> None:
        """In every second graph or so an edge comes, goes or moves, and perhaps a block."""
        with sql.transaction():
            for g in self.numbers:
                if self.random.random() < 0.4 and len(self.numbers) > 1:
                    continue
                size = self.nodes[1]
                table = self.random.choices(("edges", "blocked", "trusted"), (8, 2, 1))[0]
                match self.random.choice(("insert", "delete", "update")):
                    case "insert":
                        self._insert(sql, table, g, size)
                    case "delete":
                        self._delete(sql, table, g)
                    case "update":
                        self._delete(sql, table, g)
                        self._insert(sql, table, g, size)

    def rows(self, sql: Sql) -> dict[str, list[Row]]:
        """All rows of the tables, by what they are called without the prefix."""
        return {
            name: sql.execute(self.named(f"SELECT * FROM {{{name}}}")).fetchall()
            for name in ("edges", "blocked", "trusted")
        }

    def _insert(self, sql: Sql, table: str, g: int, size: int) -> None:
        a, b = (self.random.randrange(size) for _ in "ab")
        ends = self.random.choices(((a, b), (a, None), (None, b)), (20, 1, 1))[0]
        more = (self.random.randint(1, 3),) if table == "edges" else ()
        places = ", ".join(["%s"] * (3 + len(more)))
        sql.execute(self.named(f"INSERT INTO {{{table}}} VALUES ({places})"), (g, *ends, *more))

    def _delete(self, sql: Sql, table: str, g: int) -> None:
        """One row of the graph goes, if it has any; another that is equal to it stays."""
        places = sql.execute(
            self.named(f"SELECT ctid FROM {{{table}}} WHERE g = %s ORDER BY a, b, ctid"), (g,)
        ).fetchall()
        if places:
            self._delete_at(sql, table, self.random.choice(places)[0])

    def _delete_at(self, sql: Sql, table: str, place: str) -> None:
        sql.execute(self.named(f"DELETE FROM {{{table}}} WHERE ctid = %s::tid"), (place,))


def bag(rows: Iterable[Row]) -> Counter[Row]:
    """Rows as read by psycopg, with arrays as tuples."""
    return Counter(tuple(tuple(v) if isinstance(v, list) else v for v in row) for row in rows)
