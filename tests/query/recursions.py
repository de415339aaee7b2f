"""Small graphs, and recursive queries over them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg

from headrace.plan.evaluate import Bag
from headrace.plan.operators import Scan
from headrace.query import BoundTable, BoundView
from headrace.types import INTEGER, TEXT, Type, array_of, numeric, result_numeric
from tests.functions.engines import adapted
from tests.query.shop import Table

C_TEXT = replace(TEXT, folds=True)

# A cycle 1 → 2 → 3 → 1, a self-loop, an edge twice, a part apart, and NULLs.
EDGES = Table(
    "edges",
    (
        ("src", INTEGER, "integer"),
        ("dst", INTEGER, "integer"),
        ("w", numeric(6, 2), "numeric(6,2)"),
        ("n", result_numeric(38, 18), "numeric"),
    ),
    (),
    tuple(
        (a, b, None if w is None else Decimal(w), None if w is None else Decimal(w) / 4)
        for a, b, w in (
            (1, 2, "1.00"),
            (1, 2, "1.00"),
            (2, 3, "0.50"),
            (3, 1, "2.25"),
            (3, 4, None),
            (4, 4, "1.00"),
            (7, 8, "3.00"),
            (8, None, "1.00"),
            (None, 1, "1.00"),
        )
    ),
)
# No cycles: 1 is above 2 and 3, both above 4; 5 and 6 stand apart.
NODES = Table(
    "nodes",
    (
        ("id", INTEGER, "integer"),
        ("parent", INTEGER, "integer"),
        ("name", C_TEXT, 'text COLLATE "C"'),
        ("label", Type("character varying", length=5, ordered=False), "varchar(5)"),
    ),
    (("id",),),
    (
        (1, None, "one", "a"),
        (2, 1, "two", "b"),
        (3, 1, "three", "c"),
        (4, 2, None, "d"),
        (5, 3, "five", None),
        (6, None, "six", "f"),
    ),
)
PARTS = Table(
    "parts",
    (
        ("whole", C_TEXT, 'text COLLATE "C"'),
        ("part", C_TEXT, 'text COLLATE "C"'),
        ("n", INTEGER, "integer"),
    ),
    (),
    (
        ("bike", "wheel", 2),
        ("bike", "frame", 1),
        ("wheel", "spoke", 3),
        ("wheel", "nut", 1),
        ("frame", "nut", 4),
        ("nut", "bike", 1),
    ),
)
BLOCKED = Table("blocked", (("node", INTEGER, "integer"),), (), ((3,), (3,), (8,), (None,)))
CAPS = Table(
    "caps",
    (("k", INTEGER, "integer"), ("v", INTEGER, "integer")),
    (),
    ((1, 1), (1, 4), (2, 2), (4, None), (None, 9)),
)
LISTS = Table(
    "lists",
    (("id", INTEGER, "integer"), ("members", array_of(INTEGER), "integer[]")),
    (("id",),),
    ((1, (2, 3)), (2, (4,)), (3, (4, None)), (4, ()), (5, None)),
)
TABLES = (EDGES, NODES, PARTS, BLOCKED, CAPS, LISTS)

# As pg_get_viewdef prints it.
REACHABLE = BoundView(
    "public",
    "reachable",
    "WITH RECURSIVE r(a, b) AS (SELECT edges.src, edges.dst FROM public.edges UNION"
    " SELECT r_1.a, e.dst FROM r r_1 JOIN public.edges e ON e.src = r_1.b)"
    " SELECT r.a, r.b FROM r",
    ("a", "b"),
)


class Graphs:
    """The schema of the tables and of one recursive view."""

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        if schema not in (None, "public"):
            return None
        if name == REACHABLE.name:
            return REACHABLE
        return next((table.bound for table in TABLES if table.name == name), None)


def read(scan: Scan) -> Bag:
    """A scan's rows for the pure evaluator."""
    table = next(table for table in TABLES if table.bound.relation == scan.relation)
    physical = [column.physical for column in table.bound.columns]
    places = [physical.index(name) for name, _ in scan.fields]
    return Counter(tuple(row[place] for place in places) for row in table.rows)


def load(connection: psycopg.Connection[Any]) -> None:
    """Make the tables with their rows, and the view."""
    for table in TABLES:
        connection.execute(table.ddl)
        places = ", ".join(["%s"] * len(table.columns))
        with connection.cursor() as cursor:
            rows = [[adapted(value) for value in row] for row in table.rows]
            cursor.executemany(f"INSERT INTO {table.name} VALUES ({places})", rows)
    connection.execute(f"CREATE VIEW reachable AS {REACHABLE.query}")


CLOSURE = (
    "WITH RECURSIVE r (a, b) AS (SELECT src, dst FROM edges UNION"
    " SELECT r.a, e.dst FROM r JOIN edges AS e ON e.src = r.b)"
)
WALKS = (
    "WITH RECURSIVE r (a, path) AS (SELECT src, ARRAY[src] FROM edges WHERE src = 1 UNION ALL"
    " SELECT e.dst, r.path || e.dst FROM r JOIN edges AS e ON e.src = r.a"
)
TREE = "WITH RECURSIVE t (id, depth) AS (SELECT id, 0 FROM nodes WHERE parent IS NULL UNION ALL"

QUERIES: tuple[str, ...] = (
    # Reachability, sets and bags, duplicates and NULLs.
    f"{CLOSURE} SELECT * FROM r",
    f"{CLOSURE} SELECT a, count(*) AS n, max(b) AS m FROM r GROUP BY a",
    f"{CLOSURE} SELECT x.a, y.b FROM r AS x JOIN r AS y ON x.b = y.a",
    f"{CLOSURE} SELECT id FROM nodes WHERE EXISTS (SELECT 1 FROM r WHERE r.a = id AND r.b = 4)",
    f"{CLOSURE} SELECT id FROM nodes WHERE id NOT IN (SELECT b FROM r WHERE b IS NOT NULL)",
    f"{CLOSURE} SELECT id, (SELECT count(*) FROM r WHERE r.a = nodes.id) AS reached FROM nodes",
    "WITH RECURSIVE r AS (SELECT src AS x, dst AS y FROM edges UNION SELECT y, x FROM r)"
    " SELECT * FROM r",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION SELECT e.dst FROM r, edges AS e WHERE e.src = r.x)"
    " SELECT x FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION ALL SELECT x + 1 FROM r WHERE x < 3)"
    " SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT dst FROM edges UNION SELECT NULL FROM r WHERE x = 4)"
    " SELECT * FROM r",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 10)"
    " SELECT i, count(src) AS edges FROM n LEFT JOIN edges ON src = i GROUP BY i",
    # Trees: depth, text paths, a preserved side, the same generation.
    f"{TREE} SELECT n.id, t.depth + 1 FROM nodes AS n JOIN t ON n.parent = t.id) TABLE t",
    f"{TREE} SELECT n.id, depth + 1 FROM t LEFT JOIN nodes AS n ON n.parent = t.id"
    " WHERE t.id IS NOT NULL) SELECT * FROM t",
    "WITH RECURSIVE t AS (SELECT id, name FROM nodes WHERE parent IS NULL UNION ALL"
    " SELECT n.id, t.name || '/' || n.name FROM t JOIN nodes AS n ON n.parent = t.id)"
    " SELECT * FROM t",
    "WITH RECURSIVE t (id, path) AS (SELECT id, '/' || id FROM nodes WHERE id = 1 UNION ALL"
    " SELECT dst, path || '/' || dst FROM t JOIN edges ON src = id"
    " WHERE path NOT LIKE '%/4' AND strpos(path || '/', '/' || dst || '/') = 0) SELECT * FROM t",
    "WITH RECURSIVE t (id, path) AS (SELECT 1, ',1,' FROM nodes WHERE id = 1 UNION ALL"
    " SELECT dst, path || dst || ',' FROM t JOIN edges ON src = id"
    " WHERE strpos(path, ',' || dst || ',') = 0 AND position('x' IN path) = 0) SELECT * FROM t",
    "WITH RECURSIVE s (a, b) AS (SELECT x.id, y.id FROM nodes AS x JOIN nodes AS y"
    " ON x.parent = y.parent WHERE x.id <> y.id UNION SELECT x.id, y.id FROM nodes AS x JOIN s"
    " ON s.a = x.parent JOIN nodes AS y ON y.parent = s.b) SELECT * FROM s",
    "WITH RECURSIVE t AS (SELECT id, label FROM nodes UNION ALL SELECT t.id + 10, t.label FROM t"
    " WHERE t.id < 3) SELECT * FROM t",
    # Guards with arrays.
    f"{WALKS} WHERE e.dst <> ALL (r.path)) SELECT * FROM r",
    f"{WALKS} WHERE NOT e.dst = ANY (r.path)) SELECT a, cardinality(path) AS n FROM r",
    f"{WALKS} WHERE cardinality(r.path) < 5 AND e.dst IS NOT NULL) SELECT * FROM r",
    f"{WALKS} WHERE array_length(r.path, 1) < 4) SELECT path, count(*) AS n FROM r GROUP BY path",
    "WITH RECURSIVE r (a, path) AS (SELECT src, ARRAY[src] FROM edges UNION"
    " SELECT dst, array_append(path, dst) FROM r JOIN edges ON src = a"
    " WHERE dst <> ALL (path)) SELECT a, path FROM r",
    "WITH RECURSIVE r (whole, part, n, path) AS (SELECT whole, part, n, ARRAY[whole, part]"
    " FROM parts WHERE whole = 'bike' UNION ALL SELECT r.whole, p.part, r.n * p.n,"
    " r.path || p.part FROM r JOIN parts AS p ON p.whole = r.part WHERE p.part <> ALL (r.path))"
    " SELECT part, sum(n) AS n FROM r GROUP BY part",
    "WITH RECURSIVE r (a, seen) AS (SELECT 1, false FROM nodes WHERE id = 1 UNION"
    " SELECT dst, dst = ANY (ARRAY[1, 4]) FROM r JOIN edges ON src = a WHERE NOT seen)"
    " SELECT * FROM r",
    # What is outside may be negated and aggregated.
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN edges AS e ON e.src = r.x"
    " WHERE NOT EXISTS (SELECT 1 FROM blocked AS b WHERE b.node = e.dst)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 7 UNION ALL SELECT e.dst FROM r JOIN edges AS e ON e.src = r.x"
    " WHERE NOT EXISTS (SELECT 1 FROM blocked AS b WHERE b.node = r.x)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN edges AS e ON e.src = r.x"
    " WHERE r.x NOT IN (SELECT node FROM blocked WHERE node IS NOT NULL)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN edges AS e ON e.src = r.x"
    " WHERE r.x IN (SELECT k FROM caps WHERE v >= r.x) OR r.x = 3) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION (SELECT e.dst FROM r JOIN edges AS e"
    " ON e.src = r.x EXCEPT SELECT node FROM blocked)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION (SELECT node FROM blocked INTERSECT"
    " SELECT x + 2 FROM r)) SELECT * FROM r",
    "WITH RECURSIVE r (k, depth) AS (SELECT src, 1 FROM edges UNION ALL SELECT k, depth + 1 FROM r"
    " WHERE depth < (SELECT max(v) FROM caps AS c WHERE c.k = r.k)) SELECT * FROM r",
    "WITH RECURSIVE r (k, depth) AS (SELECT src, 1 FROM edges UNION SELECT r.k, depth + c.most"
    " FROM r JOIN (SELECT k, max(v) AS most FROM caps GROUP BY k) AS c ON c.k = r.k"
    " WHERE depth < 9) SELECT * FROM r",
    "WITH RECURSIVE r (k, n) AS (SELECT id, 0 FROM nodes UNION SELECT k, (SELECT count(*)"
    " FROM edges WHERE src = r.k)::integer FROM r) SELECT * FROM r",
    "WITH RECURSIVE r (k, n) AS (SELECT id, 0 FROM nodes UNION SELECT k, q.n FROM r, LATERAL"
    " (SELECT count(*)::integer AS n FROM edges WHERE src = r.k HAVING count(*) <> 1) AS q)"
    " SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION ALL SELECT x + 1 FROM r WHERE x < 3"
    " AND x IN (VALUES ((SELECT max(k) - 2 FROM caps)), (1))) SELECT * FROM r",
    # Several queries of one WITH: forward references, chains, uses in each other.
    "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT src FROM edges) SELECT * FROM a",
    "WITH RECURSIVE good AS (SELECT src, dst FROM edges WHERE dst IS NOT NULL), r AS"
    " (SELECT src, dst FROM good UNION SELECT r.src, g.dst FROM r JOIN good AS g ON g.src = r.dst),"
    " pairs AS (SELECT r.src AS a, s.src AS b FROM r JOIN r AS s ON r.dst = s.dst)"
    " SELECT * FROM pairs",
    f"{CLOSURE}, s (x) AS (SELECT b FROM r WHERE a = 1 UNION SELECT r.b FROM s JOIN r"
    " ON r.a = s.x) SELECT * FROM s",
    f"{CLOSURE} SELECT * FROM r WHERE (a, b) IN (WITH RECURSIVE r (c, d) AS"
    " (SELECT src, dst FROM edges UNION SELECT d, c FROM r) SELECT * FROM r)",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION (WITH q AS (SELECT x FROM r) SELECT e.dst"
    " FROM q JOIN edges AS e ON e.src = q.x)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION (WITH q AS (SELECT x FROM r) SELECT a.x + b.x"
    " FROM q AS a JOIN q AS b ON a.x = b.x WHERE a.x < 9)) SELECT * FROM r JOIN edges ON src = x",
    "WITH RECURSIVE r (x) AS (WITH s AS (SELECT src FROM edges) SELECT src FROM s UNION"
    " SELECT x + 1 FROM r JOIN s ON src = x) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION (WITH RECURSIVE q AS (SELECT x FROM r"
    " UNION SELECT dst FROM q JOIN edges ON src = x) SELECT x FROM q)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION (WITH r AS (SELECT id FROM nodes)"
    " SELECT id FROM r)) SELECT * FROM r",
    # Inside of other queries, and of a view.
    "SELECT * FROM reachable",
    "SELECT x.a, y.b FROM reachable AS x LEFT JOIN reachable AS y ON x.b = y.a",
    f"SELECT n.id, q.b FROM nodes AS n JOIN ({CLOSURE} SELECT * FROM r) AS q ON q.a = n.id",
    f"SELECT n.id, q.b FROM nodes AS n, LATERAL ({CLOSURE} SELECT * FROM r WHERE r.a = n.id) AS q",
    f"({CLOSURE} SELECT a FROM r) EXCEPT SELECT node FROM blocked",
    # Rows of functions, lateral queries.
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION ALL SELECT m FROM r JOIN lists ON id = x,"
    " unnest(members) AS m) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT id FROM lists UNION SELECT generate_series(x, 3) FROM r)"
    " SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT q.dst FROM r, LATERAL (SELECT dst FROM edges"
    " WHERE src = r.x) AS q) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT q.dst FROM r, LATERAL (SELECT dst FROM edges"
    " WHERE src = r.x ORDER BY dst LIMIT 1) AS q) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION SELECT q.y FROM nodes AS n, LATERAL"
    " (SELECT r.x + 1 AS y FROM r WHERE r.x = n.id) AS q) SELECT * FROM r",
    # DISTINCT, groups, windows and LIMIT work level by level.
    "WITH RECURSIVE r (x, d) AS (SELECT src, 0 FROM edges UNION ALL SELECT DISTINCT e.dst, d + 1"
    " FROM r JOIN edges AS e ON e.src = r.x WHERE d < 3) SELECT * FROM r",
    "WITH RECURSIVE r (x, d) AS (SELECT src, 0 FROM edges UNION ALL SELECT e.dst, d + 1 FROM r"
    " JOIN edges AS e ON e.src = r.x WHERE d < 3 GROUP BY e.dst, d) SELECT * FROM r",
    "WITH RECURSIVE r (x, d) AS (SELECT src, 0::bigint FROM edges UNION ALL SELECT max(x),"
    " count(*) + max(d) FROM (SELECT x, d FROM r) AS q HAVING max(d) < 20) SELECT * FROM r",
    "WITH RECURSIVE r (x, d) AS (SELECT src, 0::bigint FROM edges UNION ALL SELECT x,"
    " d + count(*) OVER (PARTITION BY x) FROM r WHERE d < 4) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION ALL (SELECT x + 1 FROM r WHERE x < 6"
    " ORDER BY x LIMIT 2)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges UNION ALL (SELECT x + 1 FROM r WHERE x < 3"
    " UNION SELECT node FROM blocked WHERE node > 100)) SELECT * FROM r",
    # The rows of a level meet those of the same level alone.
    "WITH RECURSIVE r (x) AS (SELECT min(src) FROM edges UNION (WITH q AS (SELECT x FROM r)"
    " SELECT a.x + b.x FROM q AS a, q AS b WHERE a.x + b.x < 20)) SELECT * FROM r",
    # The second term is evaluated even if the first has no rows.
    "WITH RECURSIVE r (x) AS (SELECT src FROM edges WHERE src > 99 UNION (SELECT x + 1 FROM r"
    " WHERE x < 6 UNION SELECT node FROM blocked)) SELECT * FROM r",
    "WITH RECURSIVE r (x) AS (SELECT big FROM (SELECT src::bigint AS big FROM edges) AS q"
    " WHERE big > 99 UNION ALL SELECT count(*) + 1 FROM (SELECT x FROM r) AS q"
    " HAVING count(*) = 0) SELECT * FROM r",
    # Types: what the first term says, also for constants and digits.
    "WITH RECURSIVE r (a, t) AS (SELECT 1, 'x' FROM blocked UNION ALL SELECT a + 1, t || 'y' FROM r"
    " WHERE a < 3) SELECT * FROM r",
    "WITH RECURSIVE r (a, w) AS (SELECT src, w FROM edges UNION ALL SELECT a + 1,"
    " (w * 2)::numeric(6, 2) FROM r WHERE a < 3) SELECT * FROM r",
    "WITH RECURSIVE r (a, w) AS (SELECT src, 1.5 FROM edges UNION ALL SELECT a + 1, w + 0.25"
    " FROM r WHERE a < 3) SELECT * FROM r",
    "WITH RECURSIVE r (a, w) AS (SELECT src, 1.5 FROM edges UNION ALL SELECT a + 1, 0.25"
    " FROM r WHERE a < 3) SELECT * FROM r",
    "WITH RECURSIVE r (a, w) AS (SELECT src, ARRAY[n] FROM edges UNION ALL SELECT a + 1,"
    " w || a::numeric FROM r WHERE a < 3) SELECT * FROM r",
    "WITH RECURSIVE r (a, w) AS (SELECT src, n FROM edges UNION ALL SELECT a + 1, w + 1"
    " FROM r WHERE a < 3) SELECT * FROM r",
    "WITH RECURSIVE r (a, w) AS (SELECT src, n FROM edges UNION ALL SELECT a + 1, w / 3"
    " FROM r WHERE a < 3) SELECT * FROM r",
)
"""Every one ends in PostgreSQL."""
