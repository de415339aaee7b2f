"""Random graphs under random changes: recursive queries and cycles are exact, and incremental.

Recursive queries are compared with PostgreSQL's own answer in the snapshot that serves them, stream
tables that read each other with a least fixed point made in plain Python from the rows of the
sources.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from random import Random

import psycopg
import pytest
from psycopg import sql as compose

import headrace
from headrace.catalog.records import Refresh
from tests.e2e.graphs import CYCLES, RECURSIVE, Graphs, bag

pytestmark = pytest.mark.e2e
# `make prove-recursion` asks for ten.
BATCHES, BATCHES_ALONE = int(os.environ.get("HEADRACE_BATCHES", "3")), 2


@dataclass
class Ways:
    """Which way refreshes went: every loop has to follow changes, and some must change rows."""

    refreshes: list[Refresh] = field(default_factory=list)

    def add(self, refresh: Refresh, loops: int) -> None:
        assert refresh.mode == "DIFFERENTIAL", refresh.reason
        rounds = [run for run in refresh.stages if run.iterations is not None]
        assert len(rounds) == loops
        assert {run.mode for run in refresh.stages} == {"DIFFERENTIAL"}
        assert refresh.iterations == max(run.iterations or 0 for run in rounds)
        self.refreshes.append(refresh)

    def share(self) -> float:
        """Of the refreshes, how many both inserted and deleted rows."""
        both = [one for one in self.refreshes if one.rows_inserted and one.rows_deleted]
        return len(both) / len(self.refreshes)


def served(sql: psycopg.Connection, name: str) -> psycopg.Cursor:
    return sql.execute(compose.SQL("SELECT * FROM {}").format(compose.Identifier(name)))


def assert_recursive(sql: psycopg.Connection, graphs: Graphs, name: str) -> None:
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        right = bag(sql.execute(graphs.named(RECURSIVE[name])))
        found = bag(served(sql, graphs.prefix + name))
    assert found == right, (name, found - right, right - found)


def assert_cycle(sql: psycopg.Connection, graphs: Graphs, name: str) -> None:
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows = graphs.rows(sql)
        found = {one: bag(served(sql, graphs.prefix + one)) for one in CYCLES[name].queries}
    for one, right in CYCLES[name].least(rows).items():
        assert found[one] == bag(right), (one, found[one] - bag(right), bag(right) - found[one])


def assert_exact(sql: psycopg.Connection, graphs: Graphs, family: str) -> None:
    if family in CYCLES:
        assert_cycle(sql, graphs, family)
    else:
        assert_recursive(sql, graphs, family)


def create(hr: headrace.Headrace, graphs: Graphs, families: list[str]) -> None:
    """All tables of these families, at once and in an order in which none could be made alone."""
    hr.set("allow_circular", True)
    queries: dict[str, str] = {}
    for family in families:
        named = CYCLES[family].queries if family in CYCLES else {family: RECURSIVE[family]}
        queries |= {graphs.prefix + name: graphs.named(query) for name, query in named.items()}
    hr.create_stream_tables(dict(reversed(queries.items())))


def follow(
    hr: headrace.Headrace, sql: psycopg.Connection, graphs: Graphs, family: str, batch: int
) -> Refresh:
    """Refresh one family, by any member of a cycle; all of it has to be exact."""
    members = members_of(family)
    refresh = hr.refresh(graphs.prefix + members[batch % len(members)])
    assert_exact(sql, graphs, family)
    return refresh


def members_of(family: str) -> list[str]:
    return [*CYCLES[family].queries] if family in CYCLES else [family]


@pytest.mark.parametrize(
    ("families", "nodes"),
    [([*RECURSIVE], (3, 8)), ([*CYCLES], (3, 6))],
    ids=["recursive", "cycles"],
)
def test_two_hundred_graphs_side_by_side(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    families: list[str],
    nodes: tuple[int, int],
) -> None:
    graphs = Graphs(Random(f"{families}"), nodes=nodes)
    graphs.load(sql)
    create(project, graphs, families)
    for family in families:
        assert_exact(sql, graphs, family)
    ways = {family: Ways() for family in families}
    for batch in range(BATCHES):
        graphs.change(sql)
        for family in families:
            refresh = follow(project, sql, graphs, family, batch)
            ways[family].add(refresh, len(members_of(family)))
    for family in families:
        assert ways[family].share() >= 0.9, family
    receipt = project.verify(members_of(families[-1])[0])
    assert receipt.equal, receipt.detail


ALONE = (
    ("reach", "free"),
    ("unblocked", "three"),
    ("narrow", "two"),
    ("parts", "free"),
    ("generation", "three"),
)


def test_graphs_alone(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    """Five graphs in tables of their own, larger and so with longer ways."""
    ways = Ways()
    for number, families in enumerate(ALONE):
        random = Random(f"alone {number}")
        graphs = Graphs(random, f"alone_{number}_", range(1), (8, 10))
        graphs.load(sql)
        create(project, graphs, [*families])
        for batch in range(BATCHES_ALONE):
            for _ in range(4):
                graphs.change(sql)
            for family in families:
                refresh = follow(project, sql, graphs, family, batch)
                ways.add(refresh, len(members_of(family)))
    assert ways.share() >= 0.5
