"""Which output columns are unique together."""

from __future__ import annotations

import pytest

from headrace.query import bind
from tests.query.shop import Shop


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT id, note FROM orders", ("id",)),
        ("SELECT note, id FROM orders", ("id",)),
        ("SELECT note FROM orders", None),
        ("SELECT id + 0 AS id FROM orders", None),
        ("SELECT item, n FROM lines", None),
        ("SELECT note FROM orders WHERE id = 7", ()),
        ("SELECT note FROM orders WHERE 7 = id AND qty > 1", ()),
        ("SELECT note FROM orders WHERE id = 7 OR id = 8", None),
        ("SELECT a.id, b.id AS other FROM orders a, orders b", ("id", "other")),
        ("SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.id = b.id", ("id",)),
        ("SELECT b.id, a.note FROM orders a JOIN orders b ON a.id = b.id", ("id",)),
        ("SELECT o.id, c.region FROM orders o JOIN customers c ON c.id = o.customer", ("id",)),
        ("SELECT c.id FROM orders o JOIN customers c ON c.id = o.customer", None),
        ("SELECT o.id FROM orders o JOIN lines l ON l.orders = o.id", None),
        ("SELECT o.id, c.id AS c FROM orders o JOIN customers c ON c.id > o.id", ("id", "c")),
        # 0.1 as numeric and as double precision are equal, but neither says what the other is.
        ("SELECT a.amount, b.id FROM orders a JOIN orders b ON a.id = b.weight", None),
        ("SELECT region, count(*) FROM customers GROUP BY region", ("region",)),
        ("SELECT count(*) FROM customers GROUP BY region", None),
        ("SELECT region, code FROM customers GROUP BY region, code", ("region", "code")),
        ("SELECT id, region FROM customers GROUP BY id, region", ("id",)),
        ("SELECT region FROM customers WHERE region = 'x' GROUP BY region", ()),
        ("SELECT count(*) FROM customers", ()),
        ("SELECT k FROM (SELECT id AS k, note FROM orders) q", ("k",)),
        ("SELECT note FROM (SELECT id AS k, note FROM orders) q WHERE k = 1", ()),
        ("SELECT a.k FROM (SELECT id AS k FROM orders) a JOIN customers c ON c.id = a.k", ("k",)),
        ("WITH q AS (SELECT id FROM orders) SELECT a.id FROM q a JOIN q b USING (id)", ("id",)),
        ("SELECT DISTINCT item, n FROM lines", ("item", "n")),
        ("SELECT DISTINCT id, note FROM orders", ("id",)),
        ("SELECT item FROM (SELECT DISTINCT item, n FROM lines) q", None),
        ("SELECT item FROM (SELECT DISTINCT item, n FROM lines) q WHERE n = 1", ("item",)),
        ("SELECT region, max(id) AS m FROM customers GROUP BY region", ("region",)),
        ("SELECT id FROM orders UNION ALL SELECT id FROM customers", None),
        ("SELECT id, note FROM orders UNION SELECT id, region FROM customers", ("id", "note")),
        ("SELECT id FROM orders WHERE id = 1 UNION ALL SELECT id FROM orders WHERE id = 1", None),
        ("SELECT id FROM orders WHERE id = 1 UNION SELECT id FROM customers", ("id",)),
        (
            "SELECT u.id, c.region FROM (SELECT id FROM orders UNION SELECT n FROM lines) u"
            " JOIN customers c ON c.id = u.id",
            ("id",),
        ),
    ],
)
def test_key(query: str, key: tuple[str, ...] | None) -> None:
    bound = bind(query, Shop())
    found = None if bound.key is None else tuple(bound.names[i] for i in bound.key)
    assert found == key
