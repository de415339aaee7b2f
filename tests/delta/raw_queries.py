"""Queries over tables whose logs hold rows that came and went."""

from __future__ import annotations

JOINED = "FROM t JOIN u ON t.k = u.k AND t.s = u.s"
LEFT = "FROM t LEFT JOIN u ON t.k = u.k"
DIVIDED = "10 / (t.b - u.b)"

# What a division sees must be there, else it may be by zero.
DIVIDING = (
    "SELECT t.k, 10 / t.b AS x FROM t JOIN u ON t.k = u.k",
    f"SELECT t.k, {DIVIDED} AS x {JOINED}",
    f"SELECT t.k {JOINED} AND {DIVIDED} > 2",
    f"SELECT t.k, 10 / (t.b + coalesce(u.b, 1)) AS x {LEFT}",
    f"SELECT t.k, u.a {LEFT} AND t.s = u.s AND {DIVIDED} > 2",
    f"SELECT t.k, u.a FROM t FULL JOIN u ON t.k = u.k AND t.s = u.s AND {DIVIDED} > 2",
    "SELECT t.k, u.b FROM t LEFT JOIN u ON 10 / t.b = u.b",
    "SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND 10 / u.b > t.b)",
    f"SELECT t.k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND {DIVIDED} > 2)",
    "SELECT t.k FROM t WHERE 10 / t.b NOT IN (SELECT 10 / u.b FROM u WHERE u.a IS NOT NULL)",
    "SELECT t.k, (SELECT max(10 / u.b) FROM u WHERE u.k = t.k) AS x FROM t",
    f"SELECT t.k, sum({DIVIDED}) AS x {JOINED} GROUP BY t.k",
    f"SELECT t.k, max({DIVIDED}) AS x {JOINED} GROUP BY t.k",
    f"SELECT t.k, sum({DIVIDED}) OVER (PARTITION BY t.k) AS x {JOINED}",
    f"SELECT t.k, {DIVIDED} AS x {JOINED} ORDER BY t.k, x LIMIT 2",
    "SELECT t.k, g FROM t JOIN u ON t.k = u.k, generate_series(1, 10 / t.b) AS g",
    "SELECT k FROM t UNION SELECT 10 / b FROM u",
    "SELECT q.k, 10 / q.n AS z FROM (SELECT k, sum(b) AS n FROM t GROUP BY k) q"
    " LEFT JOIN u ON u.k = q.k",
)

# Only rows that are there decide whether there is a row, and which one is first or least.
CHOOSING = (
    f"SELECT t.k, u.a {LEFT}",
    "SELECT t.k, u.a FROM t FULL JOIN u ON t.k = u.k AND t.b < u.b",
    f"SELECT t.k, u.a, v.a AS c {LEFT} LEFT JOIN v ON u.a = v.a",
    "SELECT t.k, q.a FROM t FULL JOIN (SELECT u.k, v.a FROM u LEFT JOIN v ON u.b = v.b) q"
    " ON q.k = t.k",
    "SELECT x.k FROM t x WHERE NOT EXISTS (SELECT 1 FROM t y WHERE y.a > x.a)",
    "SELECT t.k FROM t WHERE (t.k, t.a) NOT IN (SELECT u.k, u.a FROM u)",
    "SELECT t.k, t.a IN (SELECT u.a FROM u WHERE u.k = t.k) AS x FROM t",
    "SELECT t.k, t.a > ALL (SELECT u.a FROM u) AS x FROM t",
    f"SELECT t.k, min(t.a) AS x, max(u.a) AS y, count(*) AS n {LEFT} GROUP BY t.k",
    "SELECT min(t.a) AS x, max(u.a) AS y FROM t JOIN u ON t.k = u.k",
    "SELECT count(DISTINCT t.a) AS x, max(t.a) AS y FROM t JOIN u ON t.b = u.b",
    "SELECT k, string_agg(s, ',' ORDER BY a, b) AS x FROM t GROUP BY k HAVING count(*) > 1",
    "SELECT t.k, mode() WITHIN GROUP (ORDER BY u.a) AS x FROM t JOIN u ON t.k = u.k GROUP BY t.k",
    "SELECT k, a, row_number() OVER (PARTITION BY k ORDER BY a, b, s) AS r FROM t",
    "SELECT t.k, t.a, rank() OVER (ORDER BY u.a) AS r FROM t JOIN u ON t.k = u.k",
    f"SELECT t.k, t.a {LEFT} ORDER BY t.a, t.k LIMIT 2 OFFSET 1",
    "SELECT a, s FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
    f"SELECT DISTINCT ON (t.k) t.k, u.a {LEFT} ORDER BY t.k, u.a DESC",
    f"SELECT q.k, sum(q.n) AS n FROM (SELECT t.k, count(*) AS n {LEFT} GROUP BY t.k, t.b) q"
    " GROUP BY q.k HAVING sum(q.n) > 1",
)

# Weights are added up, so that a row and its opposite cancel; these may read a log raw.
ADDING = (
    "SELECT t.k, q.c FROM t, LATERAL (SELECT count(*) AS c FROM u WHERE u.a < t.a) q",
    "SELECT DISTINCT t.k, u.a FROM t JOIN u ON t.b = u.b",
    "SELECT k, a FROM t EXCEPT SELECT k, a FROM u",
    "SELECT k, a FROM t EXCEPT ALL SELECT k, a FROM u",
    "SELECT k, a FROM t INTERSECT ALL SELECT k, b FROM u",
    "SELECT t.k, avg(u.a) AS x, count(*) AS n FROM t JOIN u ON t.b = u.b GROUP BY t.k",
)
