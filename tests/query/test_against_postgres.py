"""What a plan computes, what its columns are called and which types they have: as in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.plan.evaluate import evaluate
from headrace.query import bind
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.golden import Golden, goldens
from tests.query.shop import Shop, load, read

pytestmark = pytest.mark.postgres


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        load(connection)
        yield connection


def test_every_golden_query(shop: psycopg.Connection[Any]) -> None:
    for golden in goldens():
        check(shop, golden)


def check(connection: psycopg.Connection[Any], golden: Golden) -> None:
    bound = bind(golden.query, Shop())
    cursor = connection.execute(golden.query)
    assert cursor.description is not None
    assert [column.name for column in cursor.description] == list(bound.names), golden.id
    types = [column.type for column in bound.plan.columns]
    assert postgres_types(connection, golden.query) == ours(connection, types), golden.id
    right = bag(cursor.fetchall(), types)
    assert bag(evaluate(bound.plan, read).elements(), types) == right, golden.id
    assert bag(evaluate(bound.written, read).elements(), types) == right, golden.id
    if bound.key is not None:
        keys = Counter(tuple(row[i] for i in bound.key) for row in right.elements())
        assert all(times == 1 for times in keys.values()), golden.id
