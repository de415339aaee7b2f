"""What a plan computes, what its columns are called and which types they have: as in PostgreSQL."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from headrace.plan.evaluate import evaluate
from headrace.query import bind
from headrace.types import Type
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


def postgres_types(connection: psycopg.Connection[Any], query: str) -> list[str]:
    """The types of the query's columns, with their lengths and digits."""
    connection.execute(f"CREATE TEMP VIEW shown AS {query}")
    found = columns_of(connection, "shown")
    connection.execute("DROP VIEW shown")
    return found


def ours(connection: psycopg.Connection[Any], types: list[Type]) -> list[str]:
    """The same for the types that the binder found."""
    columns = ", ".join(f"c{i} {type_.sql}" for i, type_ in enumerate(types))
    connection.execute(f"CREATE TEMP TABLE ours ({columns})")
    found = columns_of(connection, "ours")
    connection.execute("DROP TABLE ours")
    return found


def columns_of(connection: psycopg.Connection[Any], relation: str) -> list[str]:
    rows = connection.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        [relation],
    )
    return [row[0] for row in rows]


def bag(rows: Any, types: list[Type]) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(plain(value, type_) for value, type_ in zip(row, types, strict=True)) for row in rows
    )


def plain(value: Any, type_: Type) -> Any:
    match value:
        case list() | tuple():
            assert type_.element is not None
            return tuple(plain(each, type_.element) for each in value)
        case Decimal():
            # A quotient is right to its scale; PostgreSQL's own scale varies with the value.
            return round(value, 9) if type_.rounded else value
        case float():
            return "NaN" if math.isnan(value) else float(f"{value:.12e}")
        case UUID():
            return str(value)
        case str() if type_.kind == "character":
            return value.rstrip(" ")
        case datetime():
            return value.isoformat()
    return value
