"""Forms that PostgreSQL answers in one way only, written as people write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.plan.evaluate import evaluate
from headrace.query import bind
from headrace.query.schema import Rules
from headrace.types import Collation
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.ordered_shop import OrderedShop
from tests.query.shop import load, read

pytestmark = pytest.mark.postgres

CASTS = (
    "SELECT id::varchar AS a, id::varchar(1) AS b, big::varchar(3) AS c, big::char(4) AS d,"
    " amount::varchar AS e, amount::varchar(3) AS f, d::varchar(7) AS g, at::varchar AS h,"
    " at::char(13) AS i, (qty > 0)::varchar AS j, (qty > 0)::varchar(2) AS k,"
    " at::timestamptz::varchar AS l, at::timestamptz::varchar(10) AS m FROM orders",
    "SELECT id FROM orders WHERE id::varchar = '3' OR amount::varchar LIKE '2.%'",
    "SELECT d::varchar AS v, count(*) AS n FROM orders GROUP BY d::varchar",
    "SELECT 5::varchar AS a, 12.50::numeric(4,2)::varchar(3) AS b, true::char(2) AS c FROM orders",
)
MOMENTS = (
    "SELECT id FROM orders WHERE at::timestamptz >= '2024-01-01'",
    "SELECT id FROM orders WHERE at::timestamptz > '2024-01-01 11:59' AND at < '2024-02-01'",
    "SELECT timestamptz '2024-01-01' AS a, '2024-01-01T10:00:00.5'::timestamptz AS b,"
    " '2024-01-01 10:00:00-05'::timestamptz AS c FROM orders",
)
ROWS = [
    f"SELECT id, (customer, qty) {name} (1, 1) AS r, (note, id) {name} ('x', 2) AS s,"
    f" (customer, amount, id) {name} (qty, tax, 2) AS t FROM orders"
    for name in ("<", "<=", ">", ">=", "=", "<>")
]
JOINED_ROWS = (
    "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON (a.qty, a.id) < (b.qty, b.id)",
    "SELECT id FROM orders WHERE (d, id) > ('2024-01-01', 1)",
)
PERCENTILES = (
    "SELECT percentile_cont(NULL) WITHIN GROUP (ORDER BY amount) AS a,"
    " percentile_disc(NULL) WITHIN GROUP (ORDER BY qty) AS b,"
    " percentile_cont('0.5') WITHIN GROUP (ORDER BY amount) AS c FROM orders",
    "SELECT percentile_cont(ARRAY[0.25, NULL, 0.5]) WITHIN GROUP (ORDER BY amount) AS a,"
    " percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY qty DESC) AS b,"
    " percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY id) FILTER (WHERE id > 9) AS c"
    " FROM orders",
    "SELECT customer, percentile_disc(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY amount) AS b"
    " FROM orders GROUP BY customer",
)
ARRAYS = (
    "SELECT c.id, ARRAY(SELECT o.id FROM orders o WHERE o.customer = c.id ORDER BY o.id DESC) AS a,"
    " ARRAY(SELECT o.big FROM orders o WHERE o.customer = c.id ORDER BY o.qty, o.id) AS b"
    " FROM customers c",
    "SELECT id, ARRAY(SELECT DISTINCT item FROM lines ORDER BY item) AS a,"
    " ARRAY(SELECT n AS x FROM lines ORDER BY x NULLS FIRST LIMIT 3) AS b,"
    " ARRAY(SELECT n FROM lines WHERE n > 1 UNION ALL SELECT qty FROM orders ORDER BY 1 DESC) AS c,"
    " ARRAY(SELECT count(*) FROM lines GROUP BY item ORDER BY item) AS d,"
    " ARRAY(SELECT id FROM orders WHERE id > 99 ORDER BY 1) AS e FROM customers",
    "SELECT ARRAY(SELECT id FROM customers ORDER BY id) FROM orders",
    "SELECT id, ARRAY(SELECT DISTINCT ON (qty) id FROM orders ORDER BY qty DESC, id) AS a,"
    " ARRAY(SELECT DISTINCT ON (qty) qty FROM orders ORDER BY qty, id DESC) AS b,"
    " ARRAY(SELECT DISTINCT ON (1) id AS x FROM orders ORDER BY x DESC) AS c FROM customers",
)
CONSTANTS = (
    "SELECT id, -(2147483648) / 1000 AS a, -(-5) AS b, - - -1.50 AS c, -(-2147483648) AS d,"
    " -(9223372036854775808) AS e, -(id) AS f FROM orders",
)


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        load(connection)
        yield connection


@pytest.mark.parametrize(
    "queries", [CASTS, MOMENTS, ROWS, JOINED_ROWS, PERCENTILES, ARRAYS, CONSTANTS]
)
def test_as_in_postgresql(shop: psycopg.Connection[Any], queries: Sequence[str]) -> None:
    for query in queries:
        bound = bind(query, OrderedShop(), rules=Rules(Collation.C))
        types = [column.type for column in bound.plan.columns]
        assert postgres_types(shop, query) == ours(shop, types), query
        right = bag(shop.execute(query).fetchall(), types)
        assert bag(evaluate(bound.plan, read).elements(), types) == right, query
        assert bag(evaluate(bound.written, read).elements(), types) == right, query


def test_the_order_of_an_array_is_not_ignored() -> None:
    query = "SELECT ARRAY(SELECT id FROM orders ORDER BY id) AS a FROM customers"
    assert bind(query, OrderedShop()).notices == ()
    with pytest.raises(UserError, match="now: the current time is not maintained"):
        bind(query.replace("BY id", "BY now()"), OrderedShop())
