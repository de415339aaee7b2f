"""WITH RECURSIVE: PostgreSQL's rows, names, types and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.functions import EvaluationError
from headrace.plan.evaluate import evaluate, evaluator
from headrace.plan.operators import Filter, Operator, Recursive, Scan
from headrace.query import bind, table_names
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.recursions import CLOSURE, QUERIES, TREE, Graphs, load, read
from tests.query.unlowered import unlowered


def recursive_query(body: str, columns: str = "") -> str:
    return f"WITH RECURSIVE r {columns} AS ({body}) SELECT * FROM r"


EDGES = "SELECT src FROM edges UNION"

INVALID = (
    # Where the query may name itself.
    recursive_query("SELECT src FROM r"),
    recursive_query("SELECT src FROM edges INTERSECT SELECT src FROM r"),
    recursive_query("SELECT src FROM edges EXCEPT SELECT src FROM r"),
    recursive_query("SELECT * FROM (SELECT src FROM edges UNION SELECT src FROM r) AS q"),
    recursive_query("SELECT src FROM r UNION SELECT src FROM edges"),
    recursive_query(f"{EDGES} SELECT src FROM r UNION SELECT src FROM r"),
    recursive_query(f"{EDGES} SELECT a.src FROM r AS a, r AS b"),
    recursive_query(f"{EDGES} (SELECT src FROM r UNION ALL SELECT src FROM r)"),
    recursive_query(f"{EDGES} SELECT src FROM edges WHERE EXISTS (SELECT 1 FROM r)"),
    recursive_query(f"{EDGES} SELECT (SELECT max(src) FROM r) FROM edges"),
    recursive_query(f"{EDGES} SELECT e.src FROM edges AS e JOIN nodes ON id IN (TABLE r)"),
    recursive_query(f"{EDGES} SELECT src FROM r WHERE src = ANY (SELECT src FROM r)"),
    recursive_query("SELECT src FROM edges WHERE src IN (TABLE r) UNION SELECT src FROM r"),
    recursive_query(f"WITH q AS (TABLE r) {EDGES} SELECT src FROM q"),
    recursive_query(f"{EDGES} SELECT e.src FROM edges AS e LEFT JOIN r ON r.src = e.src"),
    recursive_query(f"{EDGES} SELECT e.src FROM r RIGHT JOIN edges AS e ON r.src = e.src"),
    recursive_query(f"{EDGES} SELECT e.src FROM r FULL JOIN edges AS e ON r.src = e.src"),
    recursive_query(f"{EDGES} SELECT e.src FROM edges AS e FULL JOIN r ON r.src = e.src"),
    recursive_query(f"{EDGES} SELECT id FROM nodes LEFT JOIN (SELECT src FROM r) AS q ON true"),
    recursive_query(f"{EDGES} SELECT id FROM (nodes JOIN r ON id = src) RIGHT JOIN caps ON k = id"),
    recursive_query(f"{EDGES} SELECT id FROM nodes LEFT JOIN (caps JOIN r ON k = src) ON true"),
    recursive_query(f"{EDGES} (SELECT src FROM edges INTERSECT ALL SELECT src FROM r)"),
    recursive_query(f"{EDGES} (SELECT src FROM edges EXCEPT SELECT src FROM r)"),
    recursive_query(f"{EDGES} (SELECT src FROM r EXCEPT ALL SELECT src FROM edges)"),
    # What may stand around and behind it.
    recursive_query(f"{EDGES} SELECT max(src) FROM r"),
    recursive_query(f"{EDGES} SELECT e.src FROM r JOIN edges AS e USING (src) GROUP BY e.src"
                    " HAVING count(*) > 1"),
    recursive_query(f"{EDGES} SELECT src FROM r ORDER BY 1"),
    recursive_query(f"{EDGES} SELECT src FROM r LIMIT 1"),
    recursive_query(f"{EDGES} SELECT src FROM r OFFSET 1"),
    recursive_query(f"({EDGES} SELECT src FROM r) LIMIT 1"),
    # Names and types.
    "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a",
    "WITH RECURSIVE a AS (SELECT src FROM edges UNION SELECT src FROM b), b AS (SELECT * FROM c),"
    " c AS (SELECT * FROM a) SELECT * FROM a",
    "WITH RECURSIVE a AS (SELECT src FROM edges), a AS (SELECT 1) SELECT * FROM a",
    "WITH a AS (SELECT src FROM edges), a AS (SELECT 1) SELECT * FROM a",
    recursive_query(f"{EDGES} SELECT src FROM r", "(a, b)"),
    recursive_query(f"{EDGES} SELECT src, 1 FROM r"),
    recursive_query(f"{EDGES} SELECT src + 1::bigint FROM r"),
    recursive_query("SELECT src, NULL FROM edges UNION SELECT src, 1 FROM r", "(src, x)"),
    recursive_query("SELECT src, '1' FROM edges UNION ALL SELECT src, 1 FROM r", "(src, x)"),
    recursive_query("SELECT src, w FROM edges UNION ALL SELECT src, w + 1 FROM r"),
    recursive_query("SELECT src, w FROM edges UNION ALL SELECT src, '1' FROM r"),
    recursive_query("SELECT src, 1 FROM edges UNION ALL SELECT dst, n FROM edges, r", "(src, x)"),
)  # fmt: skip

REFUSED = (
    (f"{CLOSURE} SEARCH DEPTH FIRST BY a SET o SELECT * FROM r", "SEARCH or CYCLE"),
    (f"{CLOSURE} CYCLE a SET c USING p SELECT * FROM r", "SEARCH or CYCLE"),
    ("SELECT id, (WITH RECURSIVE r (x) AS (SELECT id UNION SELECT dst FROM r JOIN edges"
     " ON src = x) SELECT count(*) FROM r) FROM nodes", "reads the row around it"),
    (recursive_query("SELECT src, 0.5 AS x FROM edges UNION ALL SELECT src, x * 0.5 FROM r"),
     "more digits with every level"),
    (recursive_query("SELECT 1 AS x UNION SELECT x + 1 FROM r WHERE x < 3"), "reads no table"),
)  # fmt: skip


@pytest.fixture
def graphs(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        load(connection)
        yield connection


@pytest.mark.postgres
def test_every_query_gives_postgres_own_rows(graphs: psycopg.Connection[Any]) -> None:
    for query in QUERIES:
        bound = bind(query, Graphs())
        cursor = graphs.execute(query)
        assert cursor.description is not None
        assert [column.name for column in cursor.description] == list(bound.names), query
        types = [column.type for column in bound.plan.columns]
        assert postgres_types(graphs, query) == ours(graphs, types), query
        right = bag(cursor.fetchall(), types)
        assert right, query
        assert bag(evaluate(bound.written, read).elements(), types) == right, query
        assert bag(evaluate(bound.plan, read).elements(), types) == right, query
        assert not list(unlowered(bound.plan)), query
        if bound.key is not None:
            keys = [tuple(row[i] for i in bound.key) for row in right.elements()]
            assert len(set(keys)) == len(keys), query


@pytest.mark.postgres
def test_what_postgres_refuses_is_refused_in_its_words(graphs: psycopg.Connection[Any]) -> None:
    for query in INVALID:
        with pytest.raises(psycopg.Error) as theirs:
            graphs.execute(f"EXPLAIN {query}")
        with pytest.raises(UserError) as refused:
            bind(query, Graphs())
        assert refused.value.code == "invalid-query", query
        assert refused.value.message == theirs.value.diag.message_primary, query


@pytest.mark.parametrize(("query", "message"), REFUSED)
def test_what_is_not_maintained_is_refused_by_name(query: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        bind(query, Graphs())
    assert refused.value.code == "unsupported-query"


def test_a_query_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "MAXIMUM_LEVELS", 20)
    bound = bind(recursive_query("SELECT src FROM edges UNION SELECT src + 1 FROM r"), Graphs())
    with pytest.raises(EvaluationError, match="more than 20 levels"):
        evaluate(bound.plan, read)


def found(plan: Operator) -> Iterator[Operator]:
    yield plan
    for child in plan.children:
        yield from found(child)


def recursions(plan: Operator) -> list[Recursive]:
    return [node for node in found(plan) if isinstance(node, Recursive)]


def test_every_use_of_a_query_reads_itself_by_the_same_name() -> None:
    again = ", s AS (SELECT a AS x FROM r UNION SELECT x + 1 FROM s WHERE x < 3)"
    uses = "SELECT p.a FROM r AS p, r AS q WHERE p.a IN (SELECT x FROM s) AND q.a IN (TABLE s)"
    plan = bind(f"{CLOSURE}{again} {uses}", Graphs()).plan
    closures = [node.variable for node in recursions(plan) if len(node.outputs) == 2]
    others = [node.variable for node in recursions(plan) if len(node.outputs) == 1]
    assert (len(closures), len(others)) == (4, 2)
    assert (len(set(closures)), len(set(others))) == (1, 1)
    assert not set(closures) & set(others)


def test_every_use_of_a_view_reads_it_by_the_same_name() -> None:
    plan = bind("SELECT x.a, y.b FROM reachable AS x, reachable AS y", Graphs()).plan
    assert [node.variable for node in recursions(plan)] == ["recursion_1", "recursion_1"]


def test_a_recursion_is_a_barrier_for_filters_and_columns() -> None:
    plan = bind(f"{CLOSURE} SELECT b FROM r WHERE a = 1", Graphs()).plan
    (recursion,) = recursions(plan)
    assert len(recursion.outputs) == 2
    assert not any(isinstance(node, Filter) for node in found(recursion))


def test_passes_work_inside_of_a_recursion() -> None:
    query = f"{TREE} SELECT n.id, 1 FROM nodes AS n JOIN t ON n.parent = t.id WHERE n.id > 1)"
    (recursion,) = recursions(bind(f"{query} SELECT * FROM t", Graphs()).plan)
    (own,) = (node for node in found(recursion.step) if isinstance(node, Scan)
              and node.relation == recursion.variable)  # fmt: skip
    assert [physical for physical, _ in own.fields] == ["c1"]
    (filtered,) = (node for node in found(recursion.step) if isinstance(node, Filter))
    assert isinstance(filtered.child, Scan)


@pytest.mark.parametrize(
    ("query", "key"),
    [
        (f"{CLOSURE} SELECT * FROM r", (0, 1)),
        (f"{CLOSURE} SELECT a FROM r", None),
        (f"{TREE} SELECT id + 9, 1 FROM t WHERE depth = 0) SELECT * FROM t", None),
    ],
)
def test_rows_of_a_union_are_unique(query: str, key: tuple[int, ...] | None) -> None:
    assert bind(query, Graphs()).key == key


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (f"{CLOSURE} SELECT * FROM r", {"edges"}),
        ("WITH RECURSIVE a AS (TABLE b), b AS (SELECT 1 FROM nodes) TABLE a", {"nodes"}),
        ("WITH RECURSIVE r AS (SELECT 1 UNION SELECT 2 FROM r), s AS (TABLE caps) TABLE r", set()),
        ("WITH RECURSIVE r AS (SELECT 1 UNION (WITH r AS (TABLE r) TABLE r)) TABLE r", set()),
        ("WITH RECURSIVE r AS (SELECT 1 UNION SELECT 1 FROM r, public.r) TABLE r", {"r"}),
        ("WITH r AS (SELECT 1 FROM r) TABLE r", {"r"}),
    ],
)
def test_the_names_of_a_recursive_with_are_no_tables(query: str, names: set[str]) -> None:
    assert {name for _, name in table_names(query)} == names
