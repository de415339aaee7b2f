"""The application of a soak: its tables, their stream tables of every kind, and the right answers.

All tables stay small, because writers choose keys from a fixed range. The sum of all entries is
zero in every committed state, and so it is in every state that `balances` shows.
"""

from __future__ import annotations

from typing import Any

# Keys are from 0 up to these.
CUSTOMERS, ORDERS, PRODUCTS, ACCOUNTS, NODES, SENSORS = 60, 2000, 80, 20, 14, 40

SOURCES = ("customers", "orders", "items", "products", "entries", "edges", "events", "readings")
TABLES = f"""
CREATE TABLE customers (id int PRIMARY KEY, region text, credit int);
CREATE TABLE orders
    (id int PRIMARY KEY, customer int, status text, amount numeric(12, 2), note varchar(20));
CREATE TABLE items
    (order_id int, line int, product int, quantity int, PRIMARY KEY (order_id, line));
CREATE TABLE products (id int PRIMARY KEY, category text, price numeric(10, 2));
CREATE TABLE entries (pair bigint, side int, account int, amount int, PRIMARY KEY (pair, side));
CREATE TABLE edges (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE events (kind int, value int);
ALTER TABLE events REPLICA IDENTITY FULL;
CREATE TABLE readings (sensor int, at int, value int, PRIMARY KEY (sensor, at))
    PARTITION BY RANGE (sensor);
CREATE TABLE readings_low PARTITION OF readings FOR VALUES FROM (0) TO ({SENSORS // 2});
CREATE TABLE readings_high PARTITION OF readings FOR VALUES FROM ({SENSORS // 2}) TO ({SENSORS});
INSERT INTO customers SELECT i, 'r' || i % 5, i % 7 FROM generate_series(0, {CUSTOMERS} - 1) i;
INSERT INTO orders SELECT i, i % {CUSTOMERS}, 's' || i % 4, i % 997 + 0.25, 'n' || i % 9
    FROM generate_series(0, {ORDERS} - 1, 2) i;
INSERT INTO items SELECT i, 1, i % {PRODUCTS}, i % 9 FROM generate_series(0, {ORDERS} - 1, 3) i;
INSERT INTO products SELECT i, 'c' || i % 6, i + 0.5 FROM generate_series(0, {PRODUCTS} - 1) i;
INSERT INTO edges SELECT i, (i * 5 + 1) % {NODES} FROM generate_series(0, {NODES} - 1) i;
INSERT INTO events SELECT i % 5, i % 11 FROM generate_series(1, 300) i;
INSERT INTO readings SELECT i % {SENSORS}, i / {SENSORS}, i % 100 FROM generate_series(0, 399) i;
"""

STREAM_TABLES: dict[str, str] = {
    # aggregates
    "balances": "SELECT account, sum(amount) AS balance, count(*) AS n FROM entries"
    " GROUP BY account",
    # a join of three tables
    "order_lines": "SELECT o.id, i.line, p.category, i.quantity * p.price AS price FROM orders o"
    " JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product",
    # a left join under aggregates
    "customer_orders": "SELECT c.id, c.region, count(o.id) AS orders, sum(o.amount) AS amount,"
    " max(o.amount) AS largest FROM customers c LEFT JOIN orders o ON o.customer = c.id"
    " GROUP BY c.id, c.region",
    # a full join
    "matched": "SELECT o.id, o.amount, i.order_id, i.line FROM orders o"
    " FULL JOIN items i ON i.order_id = o.id AND i.quantity > 2",
    # windows
    "ranked": "SELECT id, customer, rank() OVER (PARTITION BY customer ORDER BY amount DESC)"
    " AS place, sum(amount) OVER (PARTITION BY customer) AS total FROM orders",
    # set operations over bags
    "differences": "(SELECT id FROM products EXCEPT SELECT product FROM items)"
    " UNION ALL (SELECT value FROM events INTERSECT ALL SELECT quantity FROM items)",
    # recursion
    "reached": "WITH RECURSIVE r AS (SELECT b FROM edges WHERE a = 0 UNION"
    " SELECT e.b FROM r JOIN edges e ON e.a = r.b) SELECT b FROM r",
    # a cycle of two tables
    "odd": "SELECT a, b FROM edges UNION SELECT w.a, e.b FROM even w JOIN edges e ON e.a = w.b",
    "even": "SELECT w.a, e.b FROM odd w JOIN edges e ON e.a = w.b",
    # a diamond, published as one
    "by_customer": "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
    "by_status": "SELECT status, count(*) AS n FROM orders GROUP BY status",
    "compared": "SELECT s.status, s.n, t.total FROM by_status s"
    " CROSS JOIN (SELECT sum(n) AS total FROM by_customer) t",
    # DISTINCT
    "pairs": "SELECT DISTINCT c.region, o.status FROM orders o JOIN customers c"
    " ON c.id = o.customer",
    # the first rows
    "top_orders": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10",
    # a scalar subquery, and rows without a match
    "large_unsent": "SELECT o.id FROM orders o WHERE o.amount * 2 > (SELECT max(amount) FROM"
    " orders) AND NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id)",
    # refreshed in full
    "audit": "SELECT status, count(*) AS n, min(note) AS note FROM orders GROUP BY status",
    # a partitioned source
    "sensors": "SELECT sensor, count(*) AS n, min(value) AS low, max(value) AS high FROM readings"
    " GROUP BY sensor",
    # a bag over a source without a key
    "busy_events": "SELECT kind, value FROM events WHERE value > 2",
}
FULL = frozenset({"audit"})

_WALKS = (
    "WITH RECURSIVE r AS (SELECT a, b, true AS odd FROM edges UNION"
    " SELECT r.a, e.b, NOT odd FROM r JOIN edges e ON e.a = r.b) SELECT a, b FROM r WHERE "
)
# What each stream table has to show, as PostgreSQL computes it.
ANSWERS = {**STREAM_TABLES, "odd": f"{_WALKS} odd", "even": f"{_WALKS} NOT odd"}

# What holds in every snapshot of a reader, whatever goes on.
INVARIANTS = {
    "the balances add up to zero": "SELECT coalesce(sum(balance), 0) = 0 FROM balances",
    "the diamond shows one moment": "SELECT coalesce(sum(n), 0) = coalesce(min(total), 0)"
    " AND coalesce(min(total), 0) = coalesce(max(total), 0) FROM compared",
}


def specifications(schedule: str) -> dict[str, dict[str, Any]]:
    """Return the stream tables, for `create_stream_tables`."""
    return {
        name: {
            "query": query,
            "schedule": schedule,
            "refresh_mode": "FULL" if name in FULL else "AUTO",
        }
        for name, query in STREAM_TABLES.items()
    }
