"""Random expressions, written with few parentheses: whatever is bound means what PostgreSQL means.

The tables are those of the shop; an expression that one of the two refuses proves nothing and is
passed over, but enough of them must be accepted by both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg.types.string import TextLoader

from headrace.errors import UserError
from headrace.functions import EvaluationError
from headrace.plan.evaluate import evaluate
from headrace.query import bind
from tests.forms import rounds
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.shop import Shop, load, read

pytestmark = pytest.mark.postgres

ATOMS = st.sampled_from(
    (
        *("o.id", "o.customer", "amount", "tax", "qty", "weight", "note", "d", "at", "big"),
        *("region", "code", '"Name"', "vip", "c.id", "NULL", "true", "FALSE", "0", "1", "2", "-3"),
        *("1.50", ".5", "2e2", "3000000000", "'x'", "'2024-01-01'", "'1'", "'a  '", "'north'"),
        *("DATE '2024-01-02'", "'2024-01-01 12:00'::timestamp", "'5'::int", "'b'::text"),
    )
)
BINARY = st.sampled_from(
    (
        *("+", "-", "*", "/", "%", "||", "=", "<>", "!=", "<", "<=", ">", ">=", "AND", "OR"),
        *("IS DISTINCT FROM", "IS NOT DISTINCT FROM", "LIKE", "NOT LIKE"),
    )
)
POSTFIX = st.sampled_from(
    (
        *("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "::text", "::int", "::numeric(8,1)"),
        *("::date", "::float8", "::varchar(2)", 'COLLATE "C"', "ISNULL", "IN (1, 2)"),
        "NOT IN ('x')",
    )
)
PREFIX = st.sampled_from(("NOT", "-", "+"))


def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, BINARY, inner).map(" ".join),
        st.tuples(inner, BINARY, inner).map(" ".join),
        st.tuples(inner, POSTFIX).map(" ".join),
        st.tuples(PREFIX, inner).map(" ".join),
        inner.map("({})".format),
        st.tuples(inner, inner, inner).map(lambda p: f"{p[0]} BETWEEN {p[1]} AND {p[2]}"),
        st.tuples(inner, inner, inner).map(
            lambda p: f"CASE WHEN {p[0]} THEN {p[1]} ELSE {p[2]} END"
        ),
        st.tuples(inner, inner).map(lambda p: f"CASE {p[0]} WHEN {p[1]} THEN 1 END"),
        st.tuples(inner, inner).map(lambda p: f"coalesce({p[0]}, {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"NULLIF({p[0]}, {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]} IN ({p[1]}, 1)"),
        st.tuples(inner, inner, inner).map(lambda p: f"{p[0]} NOT IN ({p[1]}, {p[2]})"),
    )


EXPRESSIONS = st.recursive(ATOMS, wider, max_leaves=6)


@pytest.fixture(scope="module")
def counts() -> Iterator[dict[str, int]]:
    counted = {"both": 0, "all": 0}
    yield counted
    assert counted["both"] * 20 > counted["all"], counted


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        # Intervals as they are stored.
        connection.adapters.register_loader("interval", TextLoader)
        connection.execute("SET intervalstyle = iso_8601")
        load(connection)
        yield connection


@settings(
    max_examples=rounds(300, 1500, "HEADRACE_EXAMPLES"),
    deadline=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(expression=EXPRESSIONS)
def test_random_expression(
    expression: str, shop: psycopg.Connection[Any], counts: dict[str, int]
) -> None:
    query = f"SELECT {expression} FROM orders o JOIN customers c ON c.id = o.id"
    counts["all"] += 1
    try:
        bound = bind(query, Shop())
    except UserError:
        return
    try:
        cursor = shop.execute(query)
        rows = cursor.fetchall()
        declared = postgres_types(shop, query)
    except psycopg.errors.Error as error:
        if isinstance(error, psycopg.DataError) and may_fail(bound.plan):
            return
        # PostgreSQL is asked first, so a query that it refuses never gets here.
        if not isinstance(error, psycopg.DataError):
            return
        raise
    counts["both"] += 1
    assert cursor.description is not None
    assert cursor.description[0].name == bound.names[0]
    types = [column.type for column in bound.plan.columns]
    assert declared == ours(shop, types)
    if "NULL" in expression.upper() and may_fail(bound.plan):
        # PostgreSQL folds a strict operation on a constant NULL and never sees the other operand.
        return
    assert bag(evaluate(bound.plan, read).elements(), types) == bag(rows, types)


def may_fail(plan: Any) -> bool:
    try:
        evaluate(plan, read)
    except EvaluationError:
        return True
    return False
