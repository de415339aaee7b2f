"""char(n) beside NULL, constants and other texts: a bpchar, printed as PostgreSQL prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.plan.evaluate import evaluate
from headrace.query import bind
from headrace.query.schema import Rules
from headrace.types import Collation, Type
from tests.query.column_types import ours, postgres_types
from tests.query.ordered_shop import OrderedShop
from tests.query.shop import load, read

QUERIES = (
    "SELECT coalesce(code, 'q') LIKE 'q' AS a, coalesce(code, 'q ') LIKE '% ' AS b,"
    " concat(coalesce(code, 'q'), '|', coalesce(code, 'q ')) AS c,"
    " octet_length(coalesce(code, 'q ')) AS d, coalesce(code, 'q ') ~ ' $' AS e FROM customers",
    "SELECT CASE WHEN id > 1 THEN code END AS c FROM customers",
    "SELECT coalesce(code, 'abc') AS c, coalesce(code, 'q') AS d, coalesce(code, 'longer ') AS e,"
    " coalesce(code, '') AS f FROM customers",
    "SELECT code AS c FROM customers UNION ALL SELECT NULL FROM lines",
    "SELECT NULL AS c FROM lines UNION ALL SELECT code FROM customers",
    "SELECT code AS c FROM customers UNION ALL SELECT 'q ' FROM lines UNION ALL SELECT NULL",
    "SELECT code AS c FROM customers UNION SELECT NULL FROM lines",
    "SELECT coalesce(code, region) AS c, coalesce(region, code) AS d FROM customers",
    "SELECT coalesce(code, code::char(5)) AS c,"
    " CASE WHEN vip THEN code ELSE 'ab '::char(5) END AS d FROM customers",
    "SELECT coalesce(code, '') || '|' AS c, length(coalesce(code, 'x  ')) AS n,"
    " coalesce(code, 'x ')::text || '|' AS t, substr(coalesce(code, 'qrs '), 2) || '|' AS s"
    " FROM customers",
    "SELECT id FROM customers WHERE coalesce(code, 'q  ') = 'q'",
    "SELECT id FROM customers WHERE coalesce(code, 'q  ') IN ('q ', 'ab')",
    "SELECT id FROM customers WHERE coalesce(code, 'a ') < 'ab'",
    "SELECT id FROM customers WHERE coalesce(code, 'a ') = region",
    "SELECT a.id, b.id AS other FROM customers a JOIN customers b"
    " ON coalesce(a.code, 'ab ') = coalesce(b.code, 'ab')",
    "SELECT CASE WHEN id > 2 THEN code END AS c, count(*) AS n FROM customers"
    " GROUP BY CASE WHEN id > 2 THEN code END",
    "SELECT id, rank() OVER (PARTITION BY CASE WHEN id > 1 THEN code END ORDER BY id) AS r"
    " FROM customers",
    "SELECT min(code) AS l, max(code) AS h, count(coalesce(code, 'x')) AS n FROM customers",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY code) AS m FROM customers",
    "SELECT lag(code) OVER (ORDER BY id) AS l, first_value(code) OVER (ORDER BY id) AS f,"
    " max(code) OVER (ORDER BY id) AS h, lag(code, 1, 'q') OVER (ORDER BY id) AS d,"
    " id FROM customers",
    "SELECT (SELECT c.code) AS c, coalesce((SELECT c.code), 'q') AS d FROM customers c",
    "SELECT CASE WHEN id > 2 THEN code END AS c FROM customers ORDER BY c LIMIT 3",
    "SELECT s.c FROM (SELECT CASE WHEN id > 1 THEN code END AS c FROM customers) s"
    " WHERE s.c LIKE 'a %'",
    "SELECT v.x FROM (VALUES ('q'), (NULL), ('abc '::char(4))) v (x), lines",
    "SELECT coalesce(code, NULL) AS c, nullif(code, 'ab') AS n FROM customers",
    "SELECT id, nullif(coalesce(code, 'ab '), 'ab ') IS NULL AS a,"
    " coalesce(nullif(coalesce(code, 'x'), 'ab '), 'q') = 'q' AS b,"
    " concat(nullif(coalesce(code, 'ab '), 'b'), '|') AS c,"
    " octet_length(nullif(coalesce(code, 'ab '), 'b')) AS d FROM customers",
    "SELECT id, code = ANY (ARRAY['ab ']) AS a, code = ANY (ARRAY['ab', 'b ']) AS b,"
    " code <> ALL (ARRAY['ab ', NULL]) AS c, coalesce(code, 'ab ') = ANY (ARRAY['ab ']) AS d,"
    " code = ANY (ARRAY['ab '::bpchar, 'b']) AS e FROM customers",
)


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        load(connection)
        yield connection


@pytest.mark.postgres
@pytest.mark.parametrize("query", QUERIES)
def test_as_postgresql_prints_it(shop: psycopg.Connection[Any], query: str) -> None:
    bound = bind(query, OrderedShop(), rules=Rules(Collation.C))
    types = [column.type for column in bound.plan.columns]
    assert postgres_types(shop, query) == ours(shop, types)
    right = Counter(shop.execute(query).fetchall())
    for plan in (bound.plan, bound.written):
        rows = evaluate(plan, read).elements()
        assert Counter(tuple(map(printed, row, types)) for row in rows) == right


def printed(value: Any, type_: Type) -> Any:
    return value if value is None or type_.kind != "character" else value.ljust(type_.length or 0)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT coalesce(code, 'q') AS c FROM customers",
        "SELECT coalesce(code, 'q') AS c FROM customers GROUP BY coalesce(code, 'q')",
        "SELECT code AS c FROM customers UNION SELECT 'q' FROM lines",
        "SELECT coalesce(code, 'q') AS c FROM customers ORDER BY c LIMIT 1",
        "SELECT min(coalesce(code, 'q')) AS c FROM customers",
        "SELECT octet_length(greatest(code, 'ab ')) AS c FROM customers",
        "SELECT concat(least(code, region), '|') AS c FROM customers",
        "SELECT id FROM customers WHERE region = ANY (ARRAY[code, region])",
        "SELECT id FROM customers WHERE code = ANY ('{ab}')",
        "SELECT id FROM customers WHERE code = ANY (NULL)",
    ],
)
def test_where_blanks_decide_it_is_refused(query: str) -> None:
    """Equal values with different blanks: PostgreSQL itself shows any of them."""
    with pytest.raises(UserError) as caught:
        bind(query, OrderedShop(), rules=Rules(Collation.C))
    assert caught.value.code.startswith("unsupported-")
    assert caught.value.hint is not None and "text" in caught.value.hint
