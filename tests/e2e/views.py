"""Random views over two tables, random rows, random batches of changes: all from one seed."""

from __future__ import annotations

from random import Random

import psycopg

SCHEMA = """
CREATE TABLE a (id int, g int, x int, n numeric(8,2), f float8, t text, d date, b boolean);
CREATE TABLE c (id int, g int, y bigint, m numeric, t varchar(5), k char(3));
"""
TEXTS = ("", "a", "ab", "b", "ba", "Ä", "a%b")


class Views:
    """Typed expressions and queries that PostgreSQL accepts and never fails on.

    `exact` leaves out quotients, whose digits vary with the data in PostgreSQL, so that rows may be
    compared with each other.
    """

    def __init__(self, random: Random, joined: bool, exact: bool = False) -> None:
        self.random = random
        self.joined = joined
        self.exact = exact

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def number(self, depth: int = 2) -> str:
        """An integer expression."""
        leaves = ["a.id", "a.g", "a.x", str(self.random.randint(-3, 5))]
        leaves += ["c.g", "c.y"] if self.joined else []
        if depth == 0:
            return self.random.choice(leaves)
        inner = self.number(depth - 1)
        return self.pick(
            *leaves,
            f"({inner} + {self.number(depth - 1)})",
            f"({inner} - {self.number(0)})",
            f"({inner} * {self.random.randint(-2, 3)})",
            f"({inner} / {self.pick('2', '-3', '7')})",
            f"({inner} % {self.pick('2', '-3', '5')})",
            f"(- {inner})",
            f"abs({inner})",
            f"coalesce({inner}, 0)",
            f"nullif({inner}, 1)",
            f"CASE WHEN {self.condition(depth - 1)} THEN {inner} ELSE {self.number(0)} END",
            f"CASE a.g WHEN 1 THEN {inner} WHEN 2 THEN 7 END",
            "length(a.t)",
            "a.n::int",
            "(a.x::bigint)",
        )

    def decimal(self, depth: int = 2) -> str:
        """A numeric expression."""
        leaves = ["a.n", "1.25", "(a.x * 0.5)"] + (["c.m"] if self.joined else [])
        if depth == 0:
            return self.random.choice(leaves)
        inner = self.decimal(depth - 1)
        quotients = (f"({inner} / 3)", f"({inner} / nullif({self.number(0)}, 0))")
        return self.pick(
            *leaves,
            *(() if self.exact else quotients),
            f"({inner} + {self.number(0)})",
            f"({inner} * 2)",
            f"({inner} - {self.decimal(0)})",
            f"coalesce({inner}, 0.5)",
            f"CASE WHEN {self.condition(depth - 1)} THEN {inner} END",
            f"({self.number(0)})::numeric(12,3)",
        )

    def text(self) -> str:
        leaves = ["a.t", "'z'", "(a.t || '-')", "coalesce(a.t, 'none')", "a.g::text"]
        leaves += ["c.t", "c.k", "(a.t || c.t)"] if self.joined else []
        return self.random.choice(leaves)

    def condition(self, depth: int = 2) -> str:
        leaves = [
            f"{self.number(0)} {self.pick('=', '<>', '<', '<=', '>', '>=')} {self.number(0)}",
            f"{self.number(0)} IS {self.pick('', 'NOT ')}NULL",
            f"{self.number(0)} IS {self.pick('', 'NOT ')}DISTINCT FROM {self.number(0)}",
            f"a.x {self.pick('', 'NOT ')}BETWEEN -1 AND 2",
            f"a.g {self.pick('', 'NOT ')}IN (1, 2, NULL)",
            f"a.t {self.pick('=', '<>', '<', '>=')} {self.pick(*map(repr, TEXTS[:5]))}",
            f"a.t {self.pick('', 'NOT ')}LIKE {self.pick(repr('a%'), repr('_'), repr('%b'))}",
            "a.b",
            "a.b IS NOT TRUE",
            "a.d >= '2024-02-01'",
            "a.n > 1.5",
            "a.f < 2",
        ]
        leaves += ["c.k = 'k1'", "c.m > a.n"] if self.joined else []
        if depth == 0:
            return self.random.choice(leaves)
        inner = self.condition(depth - 1)
        return self.pick(
            *leaves,
            f"({inner} AND {self.condition(depth - 1)})",
            f"({inner} OR {self.condition(0)})",
            f"(NOT {inner})",
        )

    def aggregate(self) -> str:
        averages = (f"avg({self.number(1)})", f"avg({self.decimal(1)})")
        return self.pick(
            *(() if self.exact else averages),
            "count(*)",
            f"count({self.number(1)})",
            f"count({self.text()})",
            f"sum({self.number(1)})",
            f"sum({self.decimal(1)})",
            "sum(a.f)",
            "avg(a.f)",
            self.extremum(),
            self.extremum(),
            f"{self.extremum()} FILTER (WHERE {self.condition(0)})",
            f"100 * sum({self.number(0)}) / nullif(count(*), 0)",
            f"coalesce(sum({self.decimal(0)}), 0) + 7",
        )

    def extremum(self) -> str:
        values = (self.number(1), self.decimal(1), "a.x", "a.f", "a.t", "a.d")
        return f"{self.pick('min', 'max')}({self.pick(*values)})"

    def source(self) -> str:
        where = f" WHERE {self.condition()}" if self.random.random() < 0.6 else ""
        first = self.pick(
            "a",
            "a",
            "(SELECT DISTINCT * FROM a) AS a",
            "(SELECT * FROM a WHERE x > 0 UNION ALL SELECT * FROM a) AS a",
            "(SELECT * FROM a WHERE g = 1 UNION SELECT * FROM a WHERE x < 3) AS a",
            "(a JOIN (SELECT min(id) AS least FROM a) AS one ON a.id > one.least)",
        )
        if not self.joined:
            return f"FROM {first}{where}"
        on = self.pick(
            "a.g = c.g", "c.g = a.g AND a.x < c.y", "a.id = c.id", "a.t = c.t", "a.x > c.y", "true"
        )
        third = self.pick(
            "", "", " JOIN a AS b ON b.id = a.id", " JOIN c AS e ON e.y < c.y AND e.g = c.g"
        )
        return f"FROM {first} JOIN c ON {on}{third}{where}"

    def query(self) -> str:
        """A query, sometimes with another one around it."""
        if not self.exact:
            return self.select()
        inner = self.select()
        return self.pick(
            f"SELECT DISTINCT o0 FROM ({inner}) AS q",
            f"SELECT DISTINCT * FROM ({inner}) AS q",
            f"SELECT * FROM ({inner}) AS q UNION ALL SELECT * FROM ({inner}) AS r",
            f"WITH q AS ({inner}) SELECT * FROM q WHERE o0 IS NOT NULL UNION SELECT * FROM q",
            f"WITH q AS ({inner}) SELECT r.o0, s.o0 AS o1 FROM q AS r JOIN q AS s ON r.o0 = s.o0",
            f"SELECT o0, count(*) AS o1 FROM ({inner}) AS q GROUP BY o0",
            f"SELECT o1, count(*) AS o2 FROM (SELECT o0, count(*) AS o1 FROM ({inner}) AS q"
            " GROUP BY o0) AS r GROUP BY o1",
        )

    def select(self) -> str:
        if self.random.random() < 0.3:
            columns = [self.number(), self.decimal(), self.text(), "a.f", "a.d", "a.b"]
            chosen = self.random.sample(columns, self.random.randint(1, 4))
            return f"SELECT {self._named(chosen)} {self.source()}"
        keys = self.random.sample(
            ["a.g", "a.t", "a.d", "a.b", f"({self.number(1)})", self.text()],
            self.random.choice((0, 1, 1, 2)),
        )
        aggregates = [self.aggregate() for _ in range(self.random.randint(1, 3))]
        grouped = f" GROUP BY {', '.join(dict.fromkeys(keys))}" if keys else ""
        keys = list(dict.fromkeys(keys))
        if any(key.startswith("'") for key in keys):
            return self.select()
        shown = keys if self.random.random() < 0.8 else keys[:-1]
        having = ""
        if self.random.random() < 0.4:
            conditions = ("count(*) > 1", "sum(a.x) > 0", "avg(a.n) < 3", "min(a.x) < max(a.x)")
            having = f" HAVING {self.pick(*conditions)}"
        return f"SELECT {self._named([*shown, *aggregates])} {self.source()}{grouped}{having}"

    def _named(self, expressions: list[str]) -> str:
        return ", ".join(f"{text} AS o{i}" for i, text in enumerate(expressions))


def random_rows(random: Random, table: str, count: int) -> list[tuple[object, ...]]:
    def maybe(value: object) -> object:
        return None if random.random() < 0.2 else value

    def row() -> tuple[object, ...]:
        identity, group = maybe(random.randint(0, 6)), maybe(random.randint(0, 3))
        if table == "a":
            return (
                identity,
                group,
                maybe(random.randint(-5, 5)),
                maybe(random.randint(-400, 400) / 100),
                maybe(random.choice((0.0, 0.5, -1.25, 3.0, 1e10))),
                maybe(random.choice(TEXTS)),
                maybe(f"2024-0{random.randint(1, 4)}-01"),
                maybe(random.random() < 0.5),
            )
        return (
            identity,
            group,
            maybe(random.randint(-5, 5)),
            maybe(random.randint(-40, 40) / 8),
            maybe(random.choice(TEXTS)),
            maybe(random.choice(("k1", "k2", ""))),
        )

    return [row() for _ in range(count)]


def insert(sql: psycopg.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    if rows:
        marks = ", ".join(["%s"] * len(rows[0]))
        with sql.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def change(random: Random, sql: psycopg.Connection) -> str:
    """One random batch: several statements in one transaction, or one that empties a table."""
    table = random.choice(("a", "c"))
    chance = random.random()
    with sql.transaction():
        if chance < 0.08:
            sql.execute(f"DELETE FROM {table}")
            return f"emptied {table}"
        if chance < 0.14:
            sql.execute(f"TRUNCATE {table}")
            insert(sql, table, random_rows(random, table, 5))
            return f"truncated {table}"
        insert(sql, "a", random_rows(random, "a", random.randint(0, 6)))
        insert(sql, "c", random_rows(random, "c", random.randint(0, 4)))
        group = random.randint(0, 3)
        statements = (
            f"UPDATE a SET g = g + 1, x = x - 1 WHERE g = {group}",
            f"DELETE FROM a WHERE g = {group}",
            "DELETE FROM a WHERE ctid IN (SELECT min(ctid) FROM a GROUP BY g)",
            f"UPDATE c SET m = m * 2, k = 'k1' WHERE g = {group}",
            "DELETE FROM c WHERE y IS NULL",
            f"UPDATE a SET t = NULL, f = f + 1 WHERE x > {group}",
            "UPDATE a SET d = d",
            "INSERT INTO a SELECT * FROM a WHERE x = 1",
        )
        for statement in random.sample(statements, random.randint(1, 3)):
            sql.execute(statement)
    return "mixed"


def layers(random: Random) -> tuple[tuple[str, str], ...]:
    """Stream tables over stream tables, four deep, each with columns k and m."""
    second = (
        "SELECT DISTINCT k, m FROM l1",
        "SELECT k, m FROM l1 UNION ALL SELECT g, x FROM a",
        "SELECT p.k, q.m FROM l1 AS p JOIN l1 AS q ON p.m <= q.m",
        "SELECT k, m FROM l1 UNION SELECT g, x FROM a WHERE b",
    )
    third = (
        "SELECT k, max(m) AS m, count(*) AS n FROM l2 GROUP BY k HAVING count(m) > 0",
        "SELECT m AS k, min(k) AS m FROM (SELECT DISTINCT k, m FROM l2) AS q GROUP BY m",
        "SELECT p.k, p.m FROM l2 AS p, (SELECT min(m) AS least FROM l2) AS q WHERE p.m > q.least",
    )
    fourth = (
        "WITH q AS (SELECT k, m FROM l3) SELECT q.k, r.m FROM q JOIN l1 AS r ON q.k = r.k",
        "SELECT min(k) AS k, max(m) AS m FROM (SELECT k, m FROM l3 UNION SELECT k, m FROM l2) q",
        "SELECT DISTINCT p.k, q.m FROM l3 AS p JOIN l2 AS q ON p.m = q.m JOIN c ON c.g = q.k",
    )
    return (
        (
            "l1",
            "SELECT a.g AS k, min(a.x) AS m, count(*) AS n FROM a JOIN c ON a.g = c.g GROUP BY a.g",
        ),
        ("l2", random.choice(second)),
        ("l3", random.choice(third)),
        ("l4", random.choice(fourth)),
    )
