"""Random trees of set operations over the shop: names, types and rows as PostgreSQL gives them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest

from headrace.plan.evaluate import evaluate
from headrace.plan.stages import cut_stages
from headrace.query import bind
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.shop import Shop, load, read

OPERATIONS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
BRANCHES = (
    "SELECT orders AS k, item FROM lines",
    "SELECT n, item FROM lines",
    "SELECT id, note FROM orders",
    "SELECT qty, 'a' FROM orders",
    "SELECT customer, NULL FROM orders",
    "SELECT count(*), item FROM lines GROUP BY item",
    "SELECT DISTINCT orders, NULL FROM lines",
    "SELECT 1, 'a'",
    "VALUES (1, 'a'), (1, 'a'), (NULL, NULL), (2, 'b')",
    "SELECT g, 'a' FROM generate_series(1, 3) AS g",
    "SELECT l.n, v FROM lines AS l, unnest(ARRAY[l.item, 'a']) AS v",
)


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        load(connection)
        yield connection


def tree(random: Random, depth: int) -> str:
    """Without parentheses it is PostgreSQL that says what binds tighter."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(BRANCHES)
    sides = (tree(random, depth - 1), tree(random, depth - 1))
    left, right = (f"({side})" if random.random() < 0.5 else side for side in sides)
    return f"{left} {random.choice(OPERATIONS)} {right}"


@pytest.mark.postgres
def test_random_trees(shop: psycopg.Connection[Any]) -> None:
    random = Random(20240229)
    checked = 0
    while checked < 250:
        query = (
            f"SELECT q.*, c.id FROM ({tree(random, 3)}) AS q (k, item), customers AS c WHERE id = 1"
        )
        try:
            cursor = shop.execute(query)
        except psycopg.errors.DatatypeMismatch:
            continue
        bound = bind(query, Shop())
        types = [column.type for column in bound.plan.columns]
        assert postgres_types(shop, query) == ours(shop, types), query
        right = bag(cursor.fetchall(), types)
        assert bag(evaluate(bound.plan, read).elements(), types) == right, query
        checked += 1


def test_rows_that_count_are_a_stage_above_their_counts() -> None:
    """INTERSECT ALL and EXCEPT ALL read hidden counts; the others show the groups themselves."""
    for operation in ("INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"):
        bound = bind(f"SELECT n FROM lines {operation} SELECT qty FROM orders", Shop())
        stages = cut_stages(bound.plan, "x")
        assert len(stages) == (2 if operation.endswith("ALL") else 1)
        assert stages[0].additive
        assert stages[0].state is not None
