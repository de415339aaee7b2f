"""LIMIT, array_agg and string_agg without ORDER BY: where it decides nothing, and by the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.plan.evaluate import evaluate
from headrace.plan.operators import Operator, Top
from headrace.query import bind
from headrace.query.ordering import TIES_NOTICE
from headrace.query.schema import UNORDERED_NOTICE, Rules
from headrace.types import Collation
from tests.query.comparable_rows import bag
from tests.query.shop import Shop, load, read

BY_VALUE = Rules(Collation.C, by_value=True)

# There is one answer, whatever the order of rows.
ONE_ROW = (
    "SELECT count(*) AS n FROM orders LIMIT 100",
    "SELECT count(*) AS n, max(id) AS m FROM orders WHERE id > 100 HAVING max(id) > 2 LIMIT 1",
    "SELECT sum(qty) AS n FROM orders LIMIT 1 OFFSET 1",
    "SELECT count(*) AS n FROM orders OFFSET 0",
    "SELECT note FROM orders WHERE id = 2 LIMIT 1",
    "SELECT o.n FROM (SELECT count(*) AS n FROM orders LIMIT 5) o, lines",
    "SELECT c.id, (SELECT o.note FROM orders o WHERE o.id = c.id LIMIT 1) AS n FROM customers c",
    "SELECT c.id, (SELECT max(o.id) FROM orders o WHERE o.customer = c.id LIMIT 1) AS n"
    " FROM customers c",
    "SELECT a.n, b.n AS m FROM (SELECT count(*) AS n FROM orders) a,"
    " (SELECT count(*) AS n FROM lines) b LIMIT 100",
    "SELECT count(*) AS n FROM orders ORDER BY count(*) LIMIT 100",
    "SELECT array_agg(DISTINCT n) AS a, string_agg(DISTINCT item, ',') AS s FROM lines",
    "SELECT id FROM orders ORDER BY id LIMIT 2.5",
    "SELECT id FROM orders ORDER BY id LIMIT 1 + 1 OFFSET '1'",
    "SELECT id FROM orders ORDER BY id OFFSET 2 - 1 FETCH FIRST (1 + 1) ROWS ONLY",
    "SELECT id FROM orders ORDER BY id LIMIT NULL OFFSET NULL",
)


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        load(connection)
        yield connection


@pytest.mark.postgres
@pytest.mark.parametrize("query", ONE_ROW)
def test_where_no_order_is_needed(shop: psycopg.Connection[Any], query: str) -> None:
    bound = bind(query, Shop(), rules=Rules(Collation.C))
    types = [column.type for column in bound.plan.columns]
    right = bag(shop.execute(query).fetchall(), types)
    assert bag(evaluate(bound.plan, read).elements(), types) == right
    assert bag(evaluate(bound.written, read).elements(), types) == right
    assert UNORDERED_NOTICE not in bound.notices and TIES_NOTICE not in bound.notices


def test_one_row_needs_no_search_for_the_first() -> None:
    def tops(plan: Operator) -> int:
        return isinstance(plan, Top) + sum(map(tops, plan.children))

    assert tops(bind("SELECT count(*) AS n FROM orders LIMIT 100", Shop()).plan) == 0
    assert tops(bind("SELECT count(*) AS n FROM orders LIMIT 1 OFFSET 1", Shop()).plan) == 1
    # A key of a table can be dropped, and then the rows must still be no more than the limit.
    assert tops(bind("SELECT note FROM orders WHERE id = 2 LIMIT 1", Shop()).plan) == 1


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT item, n FROM lines LIMIT 3", "SELECT item, n FROM lines"),
        ("SELECT item FROM lines OFFSET 4", "SELECT item FROM lines"),
        (
            "SELECT n FROM lines UNION ALL SELECT qty FROM orders LIMIT 4",
            "SELECT n FROM lines UNION ALL SELECT qty FROM orders",
        ),
        ("SELECT note FROM orders LIMIT 2", "SELECT note FROM orders"),
    ],
)
def test_rows_by_value_are_some_that_postgresql_might_take(
    shop: psycopg.Connection[Any], query: str, whole: str
) -> None:
    bound = bind(query, Shop(), rules=BY_VALUE)
    assert bound.notices == (UNORDERED_NOTICE,)
    taken = Counter(evaluate(bound.plan, read).elements())
    assert taken <= Counter(shop.execute(whole).fetchall())
    assert taken.total() == len(shop.execute(query).fetchall())


def test_values_are_gathered_in_their_own_order() -> None:
    query = "SELECT array_agg(n) AS a, string_agg(item, '-') AS s FROM lines"
    bound = bind(query, Shop(), rules=BY_VALUE)
    assert bound.notices == (UNORDERED_NOTICE,)
    (row,) = evaluate(bound.plan, read).elements()
    assert row == ((1, 1, 2, 4, 5, None), "a-a-a-b-b")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT item FROM lines LIMIT 3",
        "SELECT id FROM orders WHERE id > 2 LIMIT 1",
        "SELECT customer, count(*) AS n FROM orders GROUP BY customer LIMIT 1",
        "SELECT array_agg(n) AS a FROM lines",
        "SELECT string_agg(item, ',') AS a FROM lines",
        "SELECT array_agg(DISTINCT note) AS a FROM orders",
    ],
)
def test_refused_with_the_option_in_the_hint(query: str) -> None:
    with pytest.raises(UserError, match="without ORDER BY is not maintained") as caught:
        bind(query, Shop(), rules=Rules(Collation.C))
    assert "unspecified_order" in (caught.value.hint or "")
    assert bind(query, Shop(), rules=BY_VALUE).notices == (UNORDERED_NOTICE,)
