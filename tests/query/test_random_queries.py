"""Random joins, filters, groups, inner queries and unions: all as in PostgreSQL.

Rows, names, types and keys; the plan as written and the plan after the passes must both give
PostgreSQL's rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.plan.evaluate import evaluate
from headrace.query import bind
from tests.forms import examples
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.shop import Shop, load, read

pytestmark = pytest.mark.postgres

# Each FROM with the columns that it makes visible, of which the first half can be grouped by.
FROMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("orders o", ("o.id", "customer", "amount", "qty", "note", "d", "big")),
    ("lines", ("orders", "item", "n")),
    ("orders o JOIN customers c ON c.id = o.customer", ("o.id", "c.id", "region", "amount", "vip")),
    ("customers c JOIN orders o USING (id)", ("id", "region", '"Name"', "amount", "qty", "o.id")),
    ("lines a, lines b", ("a.item", "b.item", "a.n", "b.orders")),
    ("lines l JOIN orders o ON o.id = l.orders JOIN customers c ON o.customer = c.id",
     ("l.item", "o.id", "region", "l.n", "amount", "c.id")),
    ("lines a NATURAL JOIN lines b", ("orders", "item", "a.n")),
    ("customers a CROSS JOIN customers b", ("a.id", "b.id", "a.vip", "b.region")),
    ("orders o LEFT JOIN customers c ON c.id = o.customer AND o.qty > 0",
     ("o.id", "c.id", "region", "amount", "vip")),
    ("lines l RIGHT JOIN customers c ON c.id = l.orders AND (l.n < 3 OR c.vip)",
     ("l.item", "c.id", "region", "l.n")),
    ("orders o FULL JOIN customers c ON c.id = o.customer", ("o.id", "c.id", "region", "amount")),
    ("customers c FULL JOIN orders o USING (id)", ("id", "region", "o.id", "amount", "c.id")),
    ("lines a NATURAL LEFT JOIN (SELECT orders, big AS n FROM lines JOIN orders ON qty = n) b",
     ("orders", "item", "n", "a.n", "b.n")),
    ("customers c LEFT JOIN (orders o JOIN lines l ON l.orders = o.id) ON o.customer = c.id",
     ("c.id", "o.id", "l.item", "region", "l.n", "amount")),
    ("orders o LEFT JOIN (SELECT orders, count(*) AS n, 7 AS k FROM lines GROUP BY orders) l"
     " ON l.orders = o.id FULL JOIN customers c ON c.id = o.customer AND l.n > 1",
     ("o.id", "c.id", "l.orders", "l.n", "region", "k")),
    ("orders o LEFT JOIN lines l ON l.orders = o.id AND o.qty + l.n > 2",
     ("o.id", "l.item", "l.n", "qty")),
)  # fmt: skip
NUMBERS = frozenset(("o.id", "c.id", "id", "customer", "amount", "qty", "big", "orders", "n")) | {
    "a.n",
    "b.n",
    "l.n",
    "a.id",
    "b.id",
    "b.orders",
}


@st.composite
def queries(draw: st.DrawFn) -> str:
    source, columns = draw(st.sampled_from(FROMS))
    column = st.sampled_from(columns)
    number = st.sampled_from([name for name in columns if name in NUMBERS])
    comparison = st.builds(
        "{} {} {}".format, number, st.sampled_from(("=", "<", ">=", "<>")), st.integers(-1, 5)
    )
    pair = st.builds("{} {} {}".format, number, st.sampled_from(("=", "<", "<>")), number)
    null = st.builds("{} IS NOT NULL".format, column)
    risky = st.builds("CASE WHEN {0} <> 0 THEN 7 / {0} END > 1".format, number)
    condition = st.recursive(
        st.one_of(comparison, pair, null, risky),
        lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(("AND", "OR")), inner),
        max_leaves=4,
    )
    where = draw(st.one_of(st.just(""), condition.map(" WHERE {}".format)))
    if draw(st.booleans()):
        shown = draw(st.lists(column, min_size=1, max_size=4))
        return _select(shown, source + where)
    keys = draw(st.lists(column, max_size=2, unique=True))
    aggregate = st.one_of(
        st.just("count(*)"),
        st.builds("count({})".format, column),
        st.builds("sum({})".format, number),
        st.builds("avg({} + 1)".format, number),
        st.builds("{}({})".format, st.sampled_from(("min", "max")), number),
        st.builds("sum({}) FILTER (WHERE {})".format, number, comparison),
        st.builds("count(DISTINCT {})".format, column),
        st.builds("sum(DISTINCT {}) FILTER (WHERE {})".format, number, comparison),
        st.builds("stddev({} % 10)".format, number),
        st.builds("mode() WITHIN GROUP (ORDER BY {} DESC)".format, number),
        st.builds("string_agg(({0})::text, '/' ORDER BY {0})".format, number),
        st.builds("coalesce(sum({}), 0) * 2 + count(*)".format, number),
    )
    shown = [*keys, *draw(st.lists(aggregate, min_size=0 if keys else 1, max_size=3))]
    sets = draw(st.sampled_from(("{}", "ROLLUP ({})", "CUBE ({})", "GROUPING SETS ({}, ())")))
    group = f" GROUP BY {sets.format(', '.join(keys))}" if keys else ""
    having = draw(
        st.one_of(
            st.just(""),
            st.builds(" HAVING count(*) > {}".format, st.integers(0, 2)),
            st.builds(" HAVING sum({}) > {}".format, number, st.integers(-1, 3)),
            *([st.just(f" HAVING {keys[0]} IS NOT NULL AND count(*) > 0")] if keys else []),
        )
    )
    return _select(shown, source + where + group + having)


@st.composite
def nested(draw: st.DrawFn) -> str:
    """Queries around queries: derived tables, WITH, DISTINCT, UNION, groups of groups."""
    query = draw(queries())
    for level in range(draw(st.integers(0, 3))):
        last = draw(st.sampled_from(("c0", "c1"))) if level else "c0"
        query = draw(
            st.sampled_from(
                (
                    f"SELECT c0 AS c0, {last} AS c1 FROM ({query}) AS q WHERE c0 IS NOT NULL",
                    f"SELECT DISTINCT c0 AS c0, {last} AS c1 FROM ({query}) AS q",
                    f"SELECT c0 AS c0, count({last}) AS c1 FROM ({query}) AS q GROUP BY c0",
                    f"WITH q AS ({query}) SELECT a.c0 AS c0, b.{last} AS c1 FROM q a JOIN q b"
                    f" ON a.c0 = b.c0 WHERE b.{last} IS NOT NULL",
                    f"WITH q (x) AS ({query}), r AS (SELECT x FROM q WHERE x IS NOT NULL)"
                    " SELECT x AS c0, x AS c1 FROM r UNION ALL SELECT x, NULL FROM q",
                    f"SELECT c0 AS c0, {last} AS c1 FROM ({query}) AS q UNION"
                    f" SELECT NULL, {last} FROM ({query}) AS r",
                    f"SELECT q.c0 AS c0, l.n AS c1 FROM ({query}) AS q, lines l WHERE l.n > 2",
                )
            )
        )
    return query


def _select(shown: list[str], rest: str) -> str:
    return "SELECT " + ", ".join(f"{s} AS c{i}" for i, s in enumerate(shown)) + f" FROM {rest}"


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        load(connection)
        yield connection


@settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(query=nested())
def test_random_query(query: str, shop: psycopg.Connection[Any]) -> None:
    bound = bind(query, Shop())
    types = [column.type for column in bound.plan.columns]
    rows = bag(shop.execute(query).fetchall(), types)
    assert postgres_types(shop, query) == ours(shop, types)
    assert bag(evaluate(bound.plan, read).elements(), types) == rows
    assert bag(evaluate(bound.written, read).elements(), types) == rows
    if bound.key is not None:
        keys = Counter(tuple(row[i] for i in bound.key) for row in rows.elements())
        assert all(times == 1 for times in keys.values())
