"""Random networks of stream tables, and which states of the sources each of them may show.

A world keeps what the sources held at every cut. A table shows its query over its sources, each at
one of these states through all ways: `shown` finds the combinations that its recorded frontiers
allow, `assert_one_world` compares with PostgreSQL's own answer over exactly these states, and looks
for one combination that all members of a group share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import psycopg
from psycopg import sql as compose

import headrace
from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.refresh.scope import consistency_groups

Rows = tuple[tuple[int, int], ...]
Combination = frozenset[tuple[str, int]]
"""For some sources the number of the state that is shown."""
SOURCES = ("s1", "s2", "s3")
PAST = "past"


@dataclass(frozen=True)
class Query:
    """A query with places for its inputs."""

    text: str
    inputs: int


# All have the columns k and v, so that any of them can be read by any other.
QUERIES = (
    Query("SELECT k, v FROM {0} WHERE v % 3 <> 0", 1),
    Query("SELECT k, (v + 1) AS v FROM {0}", 1),
    Query("SELECT k, sum(v)::bigint AS v FROM {0} GROUP BY k", 1),
    Query("SELECT k, max(v) AS v FROM {0} GROUP BY k HAVING count(*) > 1", 1),
    Query("SELECT a.k, (a.v + b.v) AS v FROM {0} a JOIN {1} b ON a.k = b.k", 2),
    Query("SELECT a.k, (a.v - coalesce(b.v, 0)) AS v FROM {0} a LEFT JOIN {1} b ON a.k = b.k", 2),
    Query("SELECT k, v FROM {0} UNION ALL SELECT k, (-v) AS v FROM {1}", 2),
    Query("SELECT k, v FROM {0} a WHERE NOT EXISTS (SELECT 1 FROM {1} b WHERE b.k = a.k)", 2),
    Query("SELECT DISTINCT a.k, c.v FROM {0} a JOIN {1} b ON a.k = b.k JOIN {2} c ON c.k = b.k", 3),
)


def random_queries(random: Random, tables: int) -> dict[str, str]:
    """So many stream tables by their names, each reading sources and tables before it."""
    found: dict[str, str] = {}
    for number in range(1, tables + 1):
        query = random.choice(QUERIES)
        # Tables are chosen more often than sources, so that ways part and meet.
        known = [*SOURCES, *found, *found]
        inputs = [random.choice(known) for _ in range(query.inputs)]
        found[f"t{number}"] = query.text.format(*inputs)
    return found


def random_change(random: Random) -> str:
    """A statement that changes a source, most often."""
    name, k, v = random.choice(SOURCES), random.randint(0, 4), random.randint(-9, 9)
    return random.choice(
        [
            f"INSERT INTO {name} (k, v) VALUES ({k}, {v})",
            f"INSERT INTO {name} (k, v) VALUES ({k}, {v}), ({(k + 1) % 5}, {v})",
            f"UPDATE {name} SET v = v + {v} WHERE k = {k}",
            f"UPDATE {name} SET k = {k} WHERE id % 5 = {abs(v) % 5}",
            f"DELETE FROM {name} WHERE id % 7 = {abs(v) % 7}",
        ]
    )


@dataclass(frozen=True)
class Published:
    """A table as it was recorded once; `content` is the epoch at which a row of it last changed
    that readers see. Changes that it does not read move its frontier alone."""

    epoch: int
    content: int
    frontier: Mapping[str, int]


@dataclass
class World:
    """A project with sources and random stream tables, and what is remembered of their past."""

    hr: headrace.Headrace
    sql: psycopg.Connection
    queries: Mapping[str, str]
    cut: int = 0
    states: dict[str, list[tuple[int, Rows]]] = field(default_factory=dict)
    published: dict[str, list[Published]] = field(default_factory=dict)
    expected: dict[tuple[str, Combination], Counter[Any]] = field(default_factory=dict)

    def create(self, random: Random, **options: Any) -> None:
        """Sources with some rows, the stream tables, and views of the same over the past."""
        self.sql.execute(f"CREATE SCHEMA {PAST}")
        for name in SOURCES:
            self.sql.execute(
                f"CREATE TABLE {name} (id serial PRIMARY KEY, k int NOT NULL, v bigint NOT NULL)"
            )
            self.sql.execute(f"CREATE TABLE {PAST}.{name} (k int, v bigint)")
            self.sql.execute(
                f"INSERT INTO {name} (k, v) SELECT i % 5, i FROM generate_series(1, 7) i"
            )
        self.sql.execute(f"SET search_path = {PAST}")
        for name, query in self.queries.items():
            self.sql.execute(f"CREATE VIEW {name} AS {query}")
        self.sql.execute("RESET search_path")
        self.hr.create_stream_tables(
            {name: {"query": query, **options} for name, query in self.queries.items()}
        )
        self.remember()

    @property
    def state(self) -> State:
        return self.hr._engine.catalog.state()

    @property
    def units(self) -> tuple[tuple[str, ...], ...]:
        """What is refreshed as one, by relations."""
        state = self.state
        found = consistency_groups(state, self.hr._engine.settings(state))
        named = {table.name: table.relation for table in state.stream_tables}
        # In the order of names, so that a seed chooses the same ones every time.
        units = (found[named[name]] or (named[name],) for name in self.queries)
        return tuple(dict.fromkeys(units))

    def rows(self, name: str) -> Rows:
        return tuple(self.sql.execute(f"SELECT k, v FROM {name} ORDER BY k, v").fetchall())

    def remember(self) -> None:
        """Note what is new since the last time: states of sources, tables that were published.

        To be called after everything that may take a cut, before sources change again.
        """
        state = self.state
        newest = state.database(1).epoch
        for source in state.sources if newest > self.cut else ():
            known = self.states.setdefault(source.relation, [])
            rows = self.rows(source.name)
            if not known or known[-1][1] != rows:
                known.append((newest, rows))
        self.cut = newest
        for table in state.stream_tables:
            records = self.published.setdefault(table.relation, [])
            content = state.relation(table.relation).changed_at
            new = Published(table.epoch, content, table.frontier)
            if not records or records[-1] != new:
                assert not records or records[-1].epoch <= table.epoch, "epochs only grow"
                records.append(new)

    def shown(self, relation: str, upto: int | None = None) -> frozenset[Combination]:
        """The combinations of sources' states that a table shows, up to an epoch of it.

        Publishes that left its rows as they were show the same.
        """
        records = self.published[relation]
        content = max(one.content for one in records if upto is None or one.epoch <= upto)
        found: set[Combination] = set()
        for one in records:
            if one.content == content:
                found |= self._joined(one.frontier)
        return frozenset(found)

    def _joined(self, frontier: Mapping[str, int]) -> Iterable[Combination]:
        found: set[Combination] = {frozenset()}
        for name, epoch in frontier.items():
            if name in self.states:
                states = self.states[name]
                number = max(i for i, (cut, _) in enumerate(states) if cut <= epoch)
                given = frozenset({frozenset({(name, number)})})
            else:
                given = self.shown(name, epoch)
            found = set(agreeing(found, given))
        return found

    def answer(self, name: str, combination: Combination) -> Counter[Any]:
        """PostgreSQL's answer to a table's query over these states of the sources."""
        if (name, combination) not in self.expected:
            state = self.state
            for relation, number in combination:
                source = state.origin(relation)
                assert source is not None
                past = compose.Identifier(PAST, source.name)
                self.sql.execute(compose.SQL("TRUNCATE {}").format(past))
                with self.sql.cursor() as cursor:
                    cursor.executemany(
                        compose.SQL("INSERT INTO {} VALUES (%s, %s)").format(past),
                        self.states[relation][number][1],
                    )
            self.expected[name, combination] = Counter(self.rows(f"{PAST}.{name}"))
        return self.expected[name, combination]

    def assert_one_world(self) -> None:
        """Every source is at one state through all ways, and the same for all of a group."""
        tables: dict[str, StreamTable] = {t.relation: t for t in self.state.stream_tables}
        for unit in self.units:
            together: Iterable[Combination] = {frozenset()}
            for relation in unit:
                name, shown = tables[relation].name, self.shown(relation)
                assert shown, f"{name} shows a source in two states"
                served = Counter(self.rows(name))
                for combination in shown:
                    expected = self.answer(name, combination)
                    missing, surplus = expected - served, served - expected
                    assert served == expected, f"{name} at {combination}: {missing}, {surplus}"
                together = set(agreeing(together, shown))
            assert together, f"{[tables[one].name for one in unit]} show several worlds"


def agreeing(some: Iterable[Combination], others: Iterable[Combination]) -> Iterator[Combination]:
    """The unions of one of each in which no source has two states."""
    for one in some:
        for other in others:
            both = one | other
            if len({name for name, _ in both}) == len(both):
                yield both
