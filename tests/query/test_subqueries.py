"""Queries inside expressions: as written and as lowered, the rows that PostgreSQL gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.lateral import Lateral
from headrace.plan.operators import Operator, Scan
from headrace.plan.scalar import Outer, Subquery, walk
from headrace.query import bind
from tests.query.subqueries import TABLES, Small, queries

pytestmark = pytest.mark.postgres

ROWS = {
    "a": [(1, 1), (1, 1), (1, 2), (2, None), (None, 1), (0, 0), (2, 2)],
    "b": [(1, 2), (2, 1), (2, 1), (None, None), (3, -1)],
    "c": [(1, None), (1, 1), (2, 0), (-1, 2)],
}


@pytest.fixture(scope="module")
def small(server: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA subqueries")
        connection.execute("SET search_path = subqueries")
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table} (k int, x int)")
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", ROWS[table])
        yield connection
        connection.execute("DROP SCHEMA subqueries CASCADE")


def read(scan: Scan) -> Bag:
    places = [("c1", "c2").index(physical) for physical, _ in scan.fields]
    return Counter(tuple(row[i] for i in places) for row in ROWS[scan.relation])


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries())
def test_the_rows_are_postgres_own(small: psycopg.Connection[Any], query: str) -> None:
    expected = Counter(small.execute(query).fetchall())
    bound = bind(query, Small())
    assert net(evaluate(bound.written, read)) == expected
    assert net(evaluate(bound.plan, read)) == expected
    assert not list(unlowered(bound.plan))


def unlowered(plan: Operator) -> Iterator[object]:
    """What lowering should have taken away."""
    if isinstance(plan, Lateral):
        yield plan
    for scalar in plan.scalars:
        yield from (node for node in walk(scalar) if isinstance(node, Outer | Subquery))
    for child in plan.children:
        yield from unlowered(child)
