"""Monotone means what it says: rows added to such a table never take rows from the result."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.generators.edges import QUERIES, Tables
from headrace.functions.function import EvaluationError
from headrace.graph.edges import classify
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import Operator, Scan
from headrace.query import bind
from tests.forms import examples

World = dict[str, Bag]
value = st.one_of(st.none(), st.integers(0, 2))
bags = st.lists(st.tuples(value, value), max_size=5).map(Counter)
worlds = st.fixed_dictionaries(dict.fromkeys("abc", bags))

# Templates over two queries with columns x and y, {0} and {1}; the result has them, too.
TEMPLATES = (
    "SELECT x, y FROM ({0}) AS q WHERE y > 0",
    "SELECT DISTINCT y AS x, x AS y FROM ({0}) AS q",
    "SELECT q.x, r.y FROM ({0}) AS q JOIN ({1}) AS r ON q.y = r.x",
    "SELECT q.x, r.y FROM ({0}) AS q LEFT JOIN ({1}) AS r ON q.y = r.x",
    "SELECT q.x, r.y FROM ({0}) AS q RIGHT JOIN ({1}) AS r ON q.y = r.x",
    "SELECT q.x, r.y FROM ({0}) AS q FULL JOIN ({1}) AS r ON q.y = r.x",
    "({0}) UNION ({1})",
    "({0}) UNION ALL ({1})",
    "({0}) INTERSECT ({1})",
    "({0}) INTERSECT ALL ({1})",
    "({0}) EXCEPT ({1})",
    "({0}) EXCEPT ALL ({1})",
    "SELECT x, y FROM ({0}) AS q WHERE EXISTS (SELECT FROM ({1}) AS r WHERE r.x = q.x)",
    "SELECT x, y FROM ({0}) AS q WHERE NOT EXISTS (SELECT FROM ({1}) AS r WHERE r.x = q.x)",
    "SELECT x, y FROM ({0}) AS q WHERE (x, y) IN (SELECT x, y FROM ({1}) AS r)",
    "SELECT x, y FROM ({0}) AS q WHERE x NOT IN (SELECT y FROM ({1}) AS r)",
    "SELECT x, y FROM ({0}) AS q WHERE x >= ANY (SELECT y FROM ({1}) AS r)",
    "SELECT x, y FROM ({0}) AS q WHERE x >= ALL (SELECT y FROM ({1}) AS r)",
    "SELECT x, y FROM ({0}) AS q WHERE y = 1 OR x IN (SELECT y FROM ({1}) AS r)",
    "SELECT x, (SELECT max(r.y) FROM ({1}) AS r WHERE r.x = q.x) AS y FROM ({0}) AS q",
    "SELECT q.x, l.y FROM ({0}) AS q, LATERAL (SELECT y FROM ({1}) AS r WHERE r.x = q.y) AS l",
    "SELECT q.x, l.y FROM ({0}) AS q, LATERAL (SELECT count(*)::integer AS y FROM ({1}) AS r"
    " WHERE r.x = q.y) AS l",
    "SELECT x, max(y) AS y FROM ({0}) AS q GROUP BY x",
    "SELECT x, x AS y FROM ({0}) AS q GROUP BY x",
    "SELECT x, rank() OVER (ORDER BY y)::integer AS y FROM ({0}) AS q",
    "SELECT x, y FROM ({0}) AS q ORDER BY x, y LIMIT 2",
    "SELECT DISTINCT ON (x) x, y FROM ({0}) AS q ORDER BY x, y",
    "SELECT q.x, g AS y FROM ({0}) AS q, generate_series(1, q.y) AS g",
    "WITH RECURSIVE t AS (SELECT x, y FROM ({0}) AS q UNION SELECT t.x, r.y FROM t JOIN ({1}) AS r"
    " ON r.x = t.y WHERE NOT EXISTS (SELECT FROM c WHERE c.x = r.y)) SELECT x, y FROM t",
)

queries = st.recursive(
    st.sampled_from("abc").map("SELECT x, y FROM {}".format),
    lambda inner: st.builds(str.format, st.sampled_from(TEMPLATES), inner, inner),
    max_leaves=4,
)


def rows(plan: Operator, world: World) -> frozenset[object]:
    def read(scan: Scan) -> Bag:
        places = ["xy".index(physical) for physical, _ in scan.fields]
        found: Bag = Counter()
        for row, weight in world[scan.relation].items():
            found[tuple(row[place] for place in places)] += weight
        return found

    return frozenset(net(evaluate(plan, read)))


@settings(max_examples=examples(300), deadline=None)
@given(queries, worlds, bags)
def test_more_rows_in_a_monotone_table_take_none_away(query: str, world: World, more: Bag) -> None:
    written = bind(query, Tables()).written
    before = rows(written, world)
    for edge in classify(written):
        if edge.monotone:
            after = rows(written, {**world, edge.relation: world[edge.relation] + more})
            assert before <= after, f"{query} loses rows with more in {edge.relation}"


# What is taken for not monotone to be on the safe side, or because of duplicates alone.
CAREFUL = {
    "SELECT x FROM a WHERE y > 0 OR EXISTS (SELECT FROM b WHERE b.x = a.x)",
    "SELECT x FROM a WHERE y > 0 OR x IN (SELECT x FROM b)",
    "SELECT x FROM a INTERSECT ALL SELECT x FROM b",
    "SELECT x FROM a GROUP BY x HAVING count(*) > 1",
}


def _loses(query: str, relation: str, random: Random) -> bool:
    written = bind(query, Tables()).written

    def bag() -> Bag:
        number = random.randint(0, 4)
        cells = (None, 0, 1, 2)
        return Counter((random.choice(cells), random.choice(cells)) for _ in range(number))

    for _ in range(200):
        world, more = {name: bag() for name in "abc"}, bag()
        try:
            before = rows(written, world)
            after = rows(written, {**world, relation: world[relation] + more})
        except EvaluationError:
            continue
        if not before <= after:
            return True
    return False


@pytest.mark.parametrize("query", [query for query in QUERIES if query not in CAREFUL])
def test_what_is_not_monotone_can_lose_rows(query: str) -> None:
    """Else the truth table would refuse more than it has to."""
    edges = classify(bind(query, Tables()).written)
    for edge in edges:
        careful = edge.operators == ("EXCEPT ALL",) and edge.relation == "a"
        if not edge.monotone and not careful:
            assert _loses(query, edge.relation, Random(query)), edge.relation


def test_what_is_taken_to_be_on_the_safe_side() -> None:
    assert set(QUERIES) >= CAREFUL
    for query in CAREFUL:
        edges = classify(bind(query, Tables()).written)
        assert not all(edge.monotone for edge in edges)
        for edge in edges:
            assert not _loses(query, edge.relation, Random(query))
