"""Views and the changes that showed how other systems went wrong, by the name of the scenario."""

from __future__ import annotations

SETUP = (
    "CREATE TABLE l (id int, k int, v int, n numeric(10,2), f float8)",
    "CREATE TABLE r (id int, k int, w int)",
    "CREATE TABLE m (id int, k int, u int)",
    "INSERT INTO l VALUES (1, 1, 10, 1.10, 0.5), (2, 1, 20, 2.20, 1e20), (3, 2, 30, 0.10, -1e20),"
    " (4, NULL, 40, NULL, 1), (5, 3, NULL, 0.20, NULL), (5, 3, NULL, 0.20, NULL)",
    "INSERT INTO r VALUES (1, 1, 7), (2, 1, 8), (3, 2, NULL), (4, NULL, 9), (4, NULL, 9)",
    "INSERT INTO m VALUES (1, 1, 1), (2, 2, 2), (3, NULL, 3)",
)
Batches = tuple[tuple[str, ...], ...]
BOTH_GO = ("DELETE FROM l WHERE k = 1", "DELETE FROM r WHERE k = 1")
BOTH_COME = ("INSERT INTO l VALUES (6, 1, 60, 6, 6)", "INSERT INTO r VALUES (6, 1, 5)")
BOTH_MOVE = ("UPDATE l SET k = k + 1", "UPDATE r SET k = k + 1 WHERE w > 7")
ALL_MOVE = (*BOTH_MOVE, "UPDATE m SET k = 3 WHERE id = 1")
NULL_COMES = ("INSERT INTO r VALUES (7, NULL, NULL)",)
NULLS_GO = ("DELETE FROM r WHERE k IS NULL OR w IS NULL",)
EMPTIED = ("DELETE FROM r",)
STEPS: Batches = (BOTH_GO, BOTH_COME, BOTH_MOVE, NULLS_GO, EMPTIED, BOTH_COME, NULL_COMES)
REACH = (
    "WITH RECURSIVE t (a, b) AS (SELECT id, k FROM r UNION"
    " SELECT t.a, r.k FROM t JOIN r ON r.id = t.b)"
)
FROM_ONE = (
    "WITH RECURSIVE t (a) AS (SELECT u FROM m WHERE id = 1 UNION"
    " SELECT r.k FROM t JOIN r ON r.id = t.a WHERE r.w = 99"
)
WALKS = (
    "WITH RECURSIVE t (a, d) AS (SELECT u, 0 FROM m WHERE id = 1 UNION ALL"
    " SELECT r.k, d + 1 FROM t JOIN r ON r.id = t.a AND r.w = 99"
)
SCENARIOS: dict[str, tuple[str, Batches]] = {
    "both sides of a join change": (
        "SELECT l.id, r.w FROM l JOIN r ON l.k = r.k",
        (BOTH_GO, BOTH_COME, BOTH_MOVE),
    ),
    "three relations change at once": (
        "SELECT l.id, r.w, m.u FROM l JOIN r ON l.k = r.k JOIN m ON m.k = r.k",
        (ALL_MOVE, (*BOTH_GO, "DELETE FROM m WHERE k = 1"), (*BOTH_COME, "UPDATE m SET k = 1")),
    ),
    "five leaves, the same table among them": (
        "SELECT a.id, b.id AS i, c.w, d.w AS x, m.u FROM l AS a JOIN l AS b ON a.k = b.k"
        " JOIN r AS c ON c.k = b.k JOIN r AS d ON d.w = c.w JOIN m ON m.k = d.k",
        (ALL_MOVE, BOTH_GO, BOTH_COME),
    ),
    "padding comes with the last match and goes with the first": (
        "SELECT l.id, r.w FROM l LEFT JOIN r ON l.k = r.k",
        (
            ("DELETE FROM r WHERE id = 1",),
            ("DELETE FROM r WHERE k = 1",),
            ("INSERT INTO r VALUES (1, 1, 7), (2, 1, 8)",),
            ("DELETE FROM r WHERE k = 1", "INSERT INTO r VALUES (9, 1, 3)"),
            *STEPS,
        ),
    ),
    "padding on both sides": (
        "SELECT l.id, l.k, r.w, r.k AS rk FROM l FULL JOIN r ON l.k = r.k AND l.v = r.w + 3",
        STEPS,
    ),
    "padding through two joins": (
        "SELECT l.id, r.w, m.u FROM l LEFT JOIN r ON l.k = r.k"
        " LEFT JOIN m ON m.k = r.k AND m.u > 0",
        (ALL_MOVE, *STEPS),
    ),
    "a sum of nothing but padding is NULL": (
        "SELECT l.k, sum(r.w) AS s, count(r.w) AS c, count(*) AS n"
        " FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.k",
        STEPS,
    ),
    "sides are chosen by ownership, not by place": (
        "SELECT l.id, r.w FROM l LEFT JOIN r ON r.k = l.k AND 5 < r.w",
        STEPS,
    ),
    "inner and outer row of EXISTS go together": (
        "SELECT id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
        STEPS,
    ),
    "inner and outer row of NOT EXISTS go together": (
        "SELECT id FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w > 7)",
        STEPS,
    ),
    "two subqueries over one source": (
        "SELECT id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k)"
        " AND NOT EXISTS (SELECT 1 FROM r WHERE r.w = l.v - 3)",
        STEPS,
    ),
    "EXISTS under OR": (
        "SELECT id, k FROM l WHERE v > 35 OR EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
        STEPS,
    ),
    "EXISTS under NOT and CASE": (
        "SELECT id FROM l WHERE NOT CASE WHEN v > 15 THEN EXISTS (SELECT 1 FROM r"
        " WHERE r.k = l.k) ELSE v IS NULL END",
        STEPS,
    ),
    "IN under COALESCE": (
        "SELECT id FROM l WHERE coalesce(k IN (SELECT k FROM r), v > 25)",
        STEPS,
    ),
    "equal rows stay apart under OR": (
        "SELECT k FROM l WHERE v IS NULL OR k IN (SELECT k FROM r WHERE w > 7)",
        STEPS,
    ),
    "IN over several columns": (
        "SELECT id FROM l WHERE (k, v - 3) IN (SELECT k, w FROM r)",
        (("UPDATE r SET w = 17 WHERE id = 2",), *STEPS),
    ),
    "IN with groups inside": (
        "SELECT id FROM l WHERE k IN (SELECT k FROM r GROUP BY k HAVING count(*) > 1)",
        STEPS,
    ),
    "NOT IN with NULLs inside and outside": (
        "SELECT id FROM l WHERE k NOT IN (SELECT k FROM r WHERE w > 7)",
        (NULLS_GO, NULL_COMES, *STEPS),
    ),
    "NOT IN over several columns with NULLs": (
        "SELECT id FROM l WHERE (k, v) NOT IN (SELECT k, w FROM r)",
        (NULLS_GO, ("INSERT INTO r VALUES (8, 2, NULL)",), NULL_COMES, *STEPS),
    ),
    "ANY and ALL with NULLs": (
        "SELECT id, k < ANY (SELECT k FROM r) AS a, v > ALL (SELECT w FROM r) AS b FROM l",
        (NULLS_GO, NULL_COMES, *STEPS),
    ),
    "a mark under NOT, OR and CASE": (
        "SELECT id, NOT (k IN (SELECT k FROM r)) AS a,"
        " CASE WHEN k NOT IN (SELECT k FROM r) THEN 1 WHEN v > 15 THEN 2 ELSE 3 END AS b FROM l",
        (NULLS_GO, NULL_COMES, *STEPS),
    ),
    "a scalar subquery and its outer row change together": (
        "SELECT id, v, (SELECT max(w) FROM r WHERE r.k = l.k) AS x FROM l",
        (BOTH_MOVE, *STEPS),
    ),
    "a scalar subquery in WHERE": (
        "SELECT id FROM l WHERE v > (SELECT avg(w) FROM r) + 10",
        STEPS,
    ),
    "nothing is NULL, a count of nothing is 0": (
        "SELECT id, (SELECT sum(w) FROM r WHERE r.k = l.k) AS s,"
        " (SELECT count(*) FROM r WHERE r.k = l.k) AS c,"
        " (SELECT coalesce(sum(w), 0) + 7 FROM r WHERE r.k = l.k) AS t FROM l",
        STEPS,
    ),
    "names are bound by scope": (
        "SELECT id FROM l WHERE EXISTS (SELECT 1 FROM r AS x WHERE x.k = l.k AND EXISTS"
        " (SELECT 1 FROM m AS l WHERE l.k = x.k AND id < 3))",
        (ALL_MOVE, *STEPS),
    ),
    "NULL is a group": (
        "SELECT k, count(*) AS n, sum(v) AS s FROM l GROUP BY k",
        (("INSERT INTO l VALUES (7, NULL, 5, 1, 1)",), ("DELETE FROM l WHERE v = 40",), *STEPS),
    ),
    "averages, counts and correlations of what is not NULL": (
        "SELECT k, avg(v) AS a, count(v) AS c, corr(v, f) AS p, regr_count(v, f) AS q"
        " FROM l WHERE id <> 2 GROUP BY k",
        (
            ("INSERT INTO l VALUES (8, 1, NULL, 1, 2), (9, 1, 3, 1, NULL)",),
            ("UPDATE l SET f = 3 WHERE k = 1",),
            ("UPDATE l SET v = NULL",),
        ),
    ),
    "the least and the greatest go, a group goes and comes back": (
        "SELECT k, min(v) AS a, max(v) AS b FROM l GROUP BY k",
        (
            ("DELETE FROM l WHERE id = 1",),
            ("DELETE FROM l WHERE k = 1", "INSERT INTO l VALUES (1, 1, 99, 1, 1)"),
            ("DELETE FROM l WHERE k = 1",),
            ("INSERT INTO l VALUES (1, 1, 3, 1, 1)",),
        ),
    ),
    "a group that crosses HAVING shows its whole total": (
        "SELECT k, sum(v) AS s, count(*) AS n FROM l GROUP BY k HAVING sum(v) >= 35",
        (
            ("INSERT INTO l VALUES (7, 2, 5, 1, 1)",),
            ("INSERT INTO l VALUES (8, 3, 50, 1, 1)",),
            ("DELETE FROM l WHERE id = 7",),
        ),
    ),
    "an update crosses the condition of a sum": (
        "SELECT k, sum(CASE WHEN v > 15 THEN v ELSE 0 END) AS s,"
        " count(*) FILTER (WHERE v > 15) AS c FROM l GROUP BY k",
        (("UPDATE l SET v = v + 10",), ("UPDATE l SET v = 40 - v WHERE k = 1",)),
    ),
    "expressions of several aggregates": (
        "SELECT k, 100 * sum(v) / nullif(sum(id), 0) AS p, sum(v) + sum(v) AS d,"
        " sum(v + coalesce(id, 0)) * 2 - max(v) AS e FROM l GROUP BY k",
        STEPS,
    ),
    "an aggregate of nothing is one row": (
        "SELECT count(*) AS n, sum(w) AS s, max(w) AS g FROM r",
        (EMPTIED, BOTH_COME, EMPTIED, NULL_COMES),
    ),
    "order inside of string_agg and array_agg": (
        "SELECT k, string_agg(w::text, ',' ORDER BY w DESC NULLS LAST, id) AS s FROM r GROUP BY k",
        STEPS,
    ),
    "sums of decimals and floats do not drift": (
        "SELECT sum(n) AS n, sum(n * (1 - 0.1) * (1 + n)) AS p, sum(f) AS f FROM l",
        (
            ("INSERT INTO l VALUES (9, 9, 9, 0.01, 1e19)",),
            ("DELETE FROM l WHERE id IN (2, 3)",),
            ("DELETE FROM l WHERE id = 9",),
            ("UPDATE l SET f = 0.25, n = 0.03",),
        ),
    ),
    "one of two equal rows goes": (
        "SELECT id, k, v FROM l",
        (("DELETE FROM l WHERE ctid = (SELECT max(ctid) FROM l WHERE id = 5)",), BOTH_MOVE),
    ),
    "UNION ALL of equal rows": (
        "SELECT k FROM l UNION ALL SELECT k FROM r UNION ALL SELECT k FROM l",
        STEPS,
    ),
    "EXCEPT ALL counts": ("SELECT k FROM l EXCEPT ALL SELECT k FROM r", STEPS),
    "INTERSECT ALL counts": ("SELECT k FROM l INTERSECT ALL SELECT k FROM r", STEPS),
    "a value that comes on one side first": (
        "SELECT k FROM l EXCEPT SELECT k FROM r",
        (
            ("INSERT INTO r VALUES (1, 77, 1)",),
            ("INSERT INTO l VALUES (1, 77, 1, 1, 1), (2, 77, 1, 1, 1)",),
            ("DELETE FROM r WHERE k = 77",),
            ("DELETE FROM l WHERE k = 77",),
        ),
    ),
    "ties in rank": (
        "SELECT id, rank() OVER (PARTITION BY k ORDER BY v) AS a,"
        " dense_rank() OVER (ORDER BY v DESC NULLS LAST) AS b FROM l",
        (("UPDATE l SET v = 10 WHERE k = 1",), *STEPS),
    ),
    "frames and several partitionings": (
        "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id, v ROWS BETWEEN 1 PRECEDING AND CURRENT"
        " ROW) AS a, count(*) OVER (PARTITION BY v) AS b, max(v) OVER () AS c FROM l",
        (BOTH_MOVE, *STEPS),
    ),
    "the first of each": (
        "SELECT DISTINCT ON (k) k, id, v FROM l ORDER BY k, v DESC NULLS LAST, id",
        STEPS,
    ),
    "filters and keys of columns that are not shown": (
        "SELECT count(*) AS n FROM (SELECT id, k, v, n FROM l WHERE n > 0.15) AS q"
        " JOIN (SELECT DISTINCT k, w FROM r) AS s ON s.k = q.k GROUP BY q.v",
        STEPS,
    ),
    "a cycle that the base does not reach": (
        f"{WALKS}) SELECT * FROM t",
        (
            ("INSERT INTO r VALUES (1, 2, 99), (2, 3, 99)",),
            ("DELETE FROM r WHERE id = 1 AND w = 99", "INSERT INTO r VALUES (2, 2, 99)"),
            ("DELETE FROM r WHERE id = 2 AND k = 2", "INSERT INTO r VALUES (1, 2, 99)"),
        ),
    ),
    "another derivation stays": (
        f"{REACH} SELECT * FROM t",
        (
            ("INSERT INTO r VALUES (1, 5, 0), (5, 8, 0), (1, 6, 0), (6, 8, 0), (6, 8, 0)",),
            ("DELETE FROM r WHERE id = 5",),
            ("DELETE FROM r WHERE ctid = (SELECT min(ctid) FROM r WHERE id = 6)",),
            ("DELETE FROM r WHERE id = 6",),
            ("INSERT INTO r VALUES (5, 8, 0)", "DELETE FROM r WHERE id = 3"),
        ),
    ),
    "rows that only support each other": (
        f"{FROM_ONE}) SELECT * FROM t",
        (
            ("INSERT INTO r VALUES (1, 5, 99), (5, 6, 99), (6, 5, 99), (6, 7, 99)",),
            ("DELETE FROM r WHERE id = 1 AND w = 99",),
            ("INSERT INTO r VALUES (1, 6, 99)",),
            ("UPDATE r SET id = 9 WHERE id = 1 AND w = 99", "INSERT INTO r VALUES (7, 6, 99)"),
        ),
    ),
    "self-loops": (
        f"{REACH} SELECT * FROM t",
        (
            ("DELETE FROM r WHERE id = k",),
            ("INSERT INTO r VALUES (3, 3, 0), (3, 3, 0), (4, 4, 0)",),
            ("DELETE FROM r WHERE id = 2",),
            ("DELETE FROM r WHERE ctid = (SELECT min(ctid) FROM r WHERE id = 3 AND k = 3)",),
        ),
    ),
    "a guard on the depth": (
        f"{WALKS} WHERE d < 3) SELECT * FROM t",
        (
            ("INSERT INTO r VALUES (1, 2, 99), (2, 1, 99), (2, 2, 99)",),
            ("UPDATE m SET u = 2 WHERE id = 1",),
            ("DELETE FROM r WHERE id = 2 AND k = 2",),
            ("DELETE FROM r WHERE id = 1 AND w = 99",),
        ),
    ),
    "a guard on the path": (
        "WITH RECURSIVE t (a, p) AS (SELECT id, ARRAY[id] FROM r UNION ALL"
        " SELECT r.k, t.p || r.k FROM t JOIN r ON r.id = t.a WHERE r.k <> ALL (t.p))"
        " SELECT * FROM t",
        (
            ("INSERT INTO r VALUES (1, 2, 0), (1, 3, 0), (1, 3, 0)",),
            ("DELETE FROM r WHERE id = 3",),
            ("INSERT INTO r VALUES (3, 4, 0), (4, 1, 0)",),
            ("DELETE FROM r WHERE id = 1",),
        ),
    ),
    "a recursion that a table outside forbids": (
        f"{FROM_ONE} AND NOT EXISTS (SELECT FROM l WHERE l.id = r.k)) SELECT * FROM t",
        (
            ("INSERT INTO r VALUES (1, 8, 99), (8, 9, 99), (9, 1, 99)",),
            ("INSERT INTO l VALUES (9, 0, 0, 0, 0)",),
            ("DELETE FROM l WHERE id = 9", "DELETE FROM r WHERE id = 9"),
            ("INSERT INTO l VALUES (8, 0, 0, 0, 0), (8, 0, 0, 0, 0)",),
            ("DELETE FROM l WHERE id = 8",),
        ),
    ),
    "an aggregate of a table outside bounds a recursion": (
        f"{WALKS} WHERE d < (SELECT sum(u) FROM m WHERE m.u < 9)) SELECT * FROM t",
        (
            ("INSERT INTO r VALUES (1, 2, 99), (2, 1, 99)",),
            ("UPDATE m SET u = 0 WHERE id > 1",),
            ("DELETE FROM m WHERE id = 2", "INSERT INTO m VALUES (4, 4, 2)"),
        ),
    ),
}  # fmt: skip
