"""Tables, and queries over them that PostgreSQL itself can verify."""

from __future__ import annotations

TABLES = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE orders (
    id int PRIMARY KEY, customer int, amount numeric(10,2), share numeric, at timestamptz,
    weight float8, code char(4), note text COLLATE "C", mood mood, tags text[], span interval
);
CREATE TABLE customers (id int PRIMARY KEY, name varchar(20));
INSERT INTO customers SELECT i, 'c' || i FROM generate_series(0, 6) i;
INSERT INTO orders
SELECT i, i % 7, i * 1.37, round(i / 3.0, 6),
    '2024-01-01'::timestamptz + i * interval '7 hours', i / 7.0,
    'c' || i % 5, 'n' || i % 11, (ARRAY['sad', 'happy', NULL])[i % 3 + 1]::mood,
    ARRAY['a' || i % 2, NULL], i * interval '1 day 2 hours'
FROM generate_series(1, 200) i;
CREATE VIEW large AS SELECT id, customer AS who, amount FROM orders WHERE amount > 20;
"""
QUERIES = {
    "plain": "SELECT * FROM orders",
    "sums": "SELECT customer, count(*) AS n, sum(amount) AS s, avg(amount) AS a, sum(weight) AS w,"
    " avg(share) AS q, min(at) AS at FROM public.orders GROUP BY customer;",
    "joined": "SELECT c.name, o.id, o.tags, o.span, o.amount / (o.id + 2) AS ratio FROM orders o"
    " LEFT JOIN customers c ON c.id = o.customer WHERE o.mood = 'sad' OR o.mood IS NULL",
    "viewed": "SELECT who, sum(amount) AS s FROM large GROUP BY who -- a view",
    "over": "WITH sums AS (SELECT customer, a FROM sums WHERE n > 2)"
    " SELECT s.customer, s.a * 2 AS twice, v.s FROM sums AS s"
    " JOIN viewed AS v ON v.who = s.customer",
    "gathered": "SELECT customer, array_agg(amount ORDER BY id) AS amounts,"
    " array_agg(amount / 3 ORDER BY id) AS thirds FROM orders GROUP BY customer",
    "ranked": "SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY at, id) AS r"
    " FROM orders",
}
