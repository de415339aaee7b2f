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
    """Typed expressions and queries that PostgreSQL accepts and never fails on."""

    def __init__(self, random: Random, joined: bool) -> None:
        self.random = random
        self.joined = joined

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
        return self.pick(
            *leaves,
            f"({inner} + {self.number(0)})",
            f"({inner} * 2)",
            f"({inner} - {self.decimal(0)})",
            f"({inner} / 3)",
            f"({inner} / nullif({self.number(0)}, 0))",
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
        return self.pick(
            "count(*)",
            f"count({self.number(1)})",
            f"count({self.text()})",
            f"sum({self.number(1)})",
            f"sum({self.decimal(1)})",
            f"avg({self.number(1)})",
            f"avg({self.decimal(1)})",
            "sum(a.f)",
            "avg(a.f)",
            f"100 * sum({self.number(0)}) / nullif(count(*), 0)",
            f"coalesce(sum({self.decimal(0)}), 0) + 7",
        )

    def source(self) -> str:
        where = f" WHERE {self.condition()}" if self.random.random() < 0.6 else ""
        if not self.joined:
            return f"FROM a{where}"
        on = self.pick("a.g = c.g", "c.g = a.g AND a.x < c.y", "a.id = c.id", "a.t = c.t")
        return f"FROM a JOIN c ON {on}{where}"

    def query(self) -> str:
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
            return self.query()
        shown = keys if self.random.random() < 0.8 else keys[:-1]
        having = ""
        if self.random.random() < 0.4:
            having = f" HAVING {self.pick('count(*) > 1', 'sum(a.x) > 0', 'avg(a.n) < 3')}"
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
