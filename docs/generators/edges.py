"""The truth table of edges.md: a query a line, and what the classification says of it."""

from __future__ import annotations

from headrace.graph.edges import Edge, classify
from headrace.query import BoundColumn, BoundTable, bind
from headrace.types import INTEGER

QUERIES: tuple[str, ...] = (
    "SELECT x FROM a WHERE y > 0",
    "SELECT DISTINCT x FROM a",
    "SELECT a.x FROM a JOIN b ON a.x = b.x",
    "SELECT x FROM a UNION SELECT x FROM b",
    "SELECT x FROM a WHERE EXISTS (SELECT FROM b WHERE b.x = a.x)",
    "SELECT x FROM a WHERE x IN (SELECT x FROM b)",
    "SELECT x FROM a WHERE x > ANY (SELECT x FROM b)",
    "SELECT x FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.x = a.x)",
    "SELECT x FROM a WHERE x NOT IN (SELECT x FROM b)",
    "SELECT x FROM a WHERE x > ALL (SELECT x FROM b)",
    "SELECT x FROM a WHERE y > 0 OR EXISTS (SELECT FROM b WHERE b.x = a.x)",
    "SELECT x FROM a WHERE y > 0 OR x IN (SELECT x FROM b)",
    "SELECT x, EXISTS (SELECT FROM b) AS some FROM a",
    "SELECT x FROM a WHERE x = (SELECT max(x) FROM b)",
    "SELECT x, (SELECT y FROM b WHERE b.x = a.x) AS y FROM a",
    "SELECT x FROM a INTERSECT SELECT x FROM b",
    "SELECT x FROM a EXCEPT SELECT x FROM b",
    "SELECT x FROM a INTERSECT ALL SELECT x FROM b",
    "SELECT x FROM a EXCEPT ALL SELECT x FROM b",
    "SELECT x FROM a GROUP BY x",
    "SELECT x, count(*) AS n FROM a GROUP BY x",
    "SELECT x FROM a GROUP BY x HAVING count(*) > 1",
    "SELECT x, row_number() OVER (ORDER BY x, y) AS n FROM a",
    "SELECT x FROM a ORDER BY x LIMIT 3",
    "SELECT DISTINCT ON (x) x, y FROM a ORDER BY x, y",
    "SELECT a.x, b.y FROM a LEFT JOIN b ON a.x = b.x",
    "SELECT a.x, b.y FROM a RIGHT JOIN b ON a.x = b.x",
    "SELECT a.x, b.y FROM a FULL JOIN b ON a.x = b.x",
    "SELECT a.x, l.y FROM a, LATERAL (SELECT y FROM b WHERE b.x = a.x) AS l",
    "SELECT a.x, l.y FROM a LEFT JOIN LATERAL (SELECT y FROM b WHERE b.x = a.x) AS l ON true",
    "SELECT a.x, l.n FROM a, LATERAL (SELECT count(*) AS n FROM b WHERE b.x = a.x) AS l",
    "SELECT a.x, g FROM a, generate_series(1, a.y) AS g",
    "SELECT a.x FROM a JOIN (SELECT x FROM b EXCEPT SELECT x FROM c) AS d ON a.x = d.x",
    "SELECT x FROM a WHERE NOT EXISTS (SELECT x FROM b GROUP BY x HAVING count(*) > 1)",
    "SELECT a.x FROM a JOIN b ON a.x = b.x WHERE NOT EXISTS (SELECT FROM a AS o WHERE o.x = b.y)",
    "WITH RECURSIVE r AS (SELECT x, y FROM a UNION SELECT r.x, b.y FROM r JOIN b ON b.x = r.y"
    " WHERE NOT EXISTS (SELECT FROM c WHERE c.x = b.x)) SELECT x, y FROM r",
)


class Tables:
    """Three tables a, b and c with two columns each; their relations are called as they are."""

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        if name not in ("a", "b", "c"):
            return None
        columns = tuple(BoundColumn(column, column, INTEGER, "integer") for column in ("x", "y"))
        return BoundTable(name, "public", name, columns)


def edges(query: str) -> tuple[Edge, ...]:
    """The edges of a query over the three tables."""
    return classify(bind(query, Tables()).written)


def edges_table() -> str:
    """One row a query: what it is monotone in, and what not, with the operators."""
    from docs.generate import table

    rows = []
    for query in QUERIES:
        found = edges(query)
        monotone = ", ".join(edge.relation for edge in found if edge.monotone)
        others = (
            f"{edge.relation}: {', '.join(edge.operators)}" for edge in found if not edge.monotone
        )
        rows.append((f"`{query}`", monotone, "; ".join(others)))
    return table(("query", "monotone in", "not monotone in"), rows)
