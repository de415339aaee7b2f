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
        ("SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON c.id = o.customer", ("id",)),
        # Customers without orders have no order's number, and are many.
        (
            "SELECT c.id, o.id AS o FROM customers c LEFT JOIN orders o ON o.customer = c.id",
            ("id", "o"),
        ),
        ("SELECT o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id", None),
        ("SELECT o.id FROM customers c RIGHT JOIN orders o ON o.customer = c.id", ("id",)),
        # A group of NULLs and a row without a match look alike.
        (
            "SELECT q.item, q.n FROM customers c LEFT JOIN (SELECT item, count(*) AS n FROM lines"
            ' GROUP BY item) q ON q.item IS NOT DISTINCT FROM c."Name"',
            None,
        ),
        (
            "SELECT c.id, q.item FROM customers c LEFT JOIN (SELECT item, count(*) AS n FROM lines"
            ' GROUP BY item) q ON q.item <> c."Name"',
            ("id", "item"),
        ),
        (
            "SELECT c.id, q.n FROM customers c LEFT JOIN (SELECT item, count(*) AS n FROM lines"
            ' GROUP BY item) q ON q.item = c."Name"',
            ("id",),
        ),
        # What is one value in the padded side may be NULL beside it.
        (
            "SELECT q.id, c.vip FROM customers c LEFT JOIN (SELECT id FROM orders WHERE id = 1) q"
            " ON q.id = c.id",
            None,
        ),
        ("SELECT o.id AS o, c.id AS c FROM orders o FULL JOIN customers c USING (id)", ("o", "c")),
        ("SELECT id FROM orders FULL JOIN customers USING (id)", None),
        (
            "SELECT a.item AS a, b.orders AS b FROM (SELECT DISTINCT item, n FROM lines) a"
            " FULL JOIN (SELECT DISTINCT orders FROM lines) b ON a.n = b.orders",
            None,
        ),
        (
            "SELECT a.item AS a, b.id AS b FROM (SELECT DISTINCT item FROM lines) a FULL JOIN"
            ' customers b ON a.item = b."Name"',
            ("a", "b"),
        ),
        (
            "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer = c.id)",
            ("id",),
        ),
        ("SELECT id FROM customers WHERE id NOT IN (SELECT n FROM lines)", ("id",)),
    ],
)
def test_key(query: str, key: tuple[str, ...] | None) -> None:
    bound = bind(query, Shop())
    found = None if bound.key is None else tuple(bound.names[i] for i in bound.key)
    assert found == key
