"""How a query depends on what it reads, operator by operator, as the truth table says."""

from __future__ import annotations

import re

import pytest

from docs.generators.edges import QUERIES, Tables, edges
from headrace.algebra.scalar import Column
from headrace.graph.edges import Edge, classify
from headrace.plan.operators import Negate, Recursive, Scan
from headrace.plan.surface_operators import SetOperation
from headrace.query import bind
from headrace.types import INTEGER


def of(query: str) -> dict[str, tuple[str, ...]]:
    return {edge.relation: edge.operators for edge in edges(query)}


def test_a_scan_is_monotone() -> None:
    assert edges("SELECT x FROM a") == (Edge("a"),)
    assert Edge("a").monotone
    assert not Edge("a", ("EXCEPT",)).monotone


def test_filter_project_and_union_are_monotone() -> None:
    assert of("SELECT x + 1 AS x FROM a WHERE y > 0 UNION ALL SELECT x FROM b") == {
        "a": (),
        "b": (),
    }


def test_distinct_is_monotone() -> None:
    assert of("SELECT DISTINCT x FROM a") == {"a": ()}
    assert of("SELECT x FROM a UNION SELECT y FROM a") == {"a": ()}
    assert of("SELECT x FROM a GROUP BY x") == {"a": ()}


@pytest.mark.parametrize(
    ("condition", "operator"),
    [
        ("NOT EXISTS (SELECT FROM b WHERE b.x = a.x)", "NOT EXISTS"),
        ("x NOT IN (SELECT x FROM b)", "NOT IN"),
        ("(x, y) NOT IN (SELECT x, y FROM b)", "NOT IN"),
        ("NOT x IN (SELECT x FROM b)", "NOT IN"),
        ("x <> ALL (SELECT x FROM b)", "NOT IN"),
        ("x > ALL (SELECT x FROM b)", "ALL"),
        ("x = ALL (SELECT x FROM b)", "ALL"),
    ],
)
def test_an_anti_join_is_monotone_outside_and_not_inside(condition: str, operator: str) -> None:
    assert of(f"SELECT x FROM a WHERE y > 0 AND {condition}") == {"a": (), "b": (operator,)}


@pytest.mark.parametrize(
    "condition",
    [
        "EXISTS (SELECT FROM b WHERE b.x = a.x)",
        "x IN (SELECT x FROM b)",
        "(x, y) IN (SELECT x, y FROM b)",
        "x = ANY (SELECT x FROM b)",
        "x > ANY (SELECT x FROM b)",
    ],
)
def test_a_semi_join_is_monotone_on_both_sides(condition: str) -> None:
    assert of(f"SELECT x FROM a WHERE {condition} AND y > 0") == {"a": (), "b": ()}
    assert of(f"SELECT x FROM a WHERE {condition} OR {condition}")["b"] != ()


def test_subqueries_in_the_condition_of_a_join_are_as_in_where() -> None:
    found = of("SELECT a.x FROM a JOIN b ON a.x = b.x AND a.y IN (SELECT x FROM c)")
    assert found == {"a": (), "b": (), "c": ()}
    found = of("SELECT a.x FROM a JOIN b ON a.y NOT IN (SELECT x FROM c)")
    assert found == {"a": (), "b": (), "c": ("NOT IN",)}


def test_except_is_monotone_on_its_left_side_alone() -> None:
    assert of("SELECT x FROM a EXCEPT SELECT x FROM b") == {"a": (), "b": ("EXCEPT",)}
    # The left side of the one is inside the right side of the other.
    assert of("SELECT x FROM c EXCEPT (SELECT x FROM a EXCEPT SELECT x FROM b)") == {
        "c": (),
        "a": ("EXCEPT",),
        "b": ("EXCEPT",),
    }


def test_intersect_is_monotone_on_both_sides() -> None:
    assert of("SELECT x FROM a INTERSECT SELECT x FROM b") == {"a": (), "b": ()}


@pytest.mark.parametrize("operation", ["INTERSECT ALL", "EXCEPT ALL"])
def test_operations_that_count_are_not_monotone(operation: str) -> None:
    found = of(f"SELECT x FROM a {operation} SELECT x FROM b")
    assert found == {"a": (operation,), "b": (operation,)}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM a",
        "SELECT x, sum(y) AS n FROM a GROUP BY x",
        "SELECT x FROM a GROUP BY x HAVING min(y) > 0",
        "SELECT 1 AS one FROM a HAVING true",
    ],
)
def test_an_aggregate_is_not_monotone(query: str) -> None:
    assert of(query) == {"a": ("aggregate",)}


def test_a_join_is_monotone_on_both_sides() -> None:
    assert of("SELECT a.x FROM a JOIN b ON a.x = b.x, c") == {"a": (), "b": (), "c": ()}


def test_a_window_a_limit_and_distinct_on_are_not_monotone() -> None:
    assert of("SELECT x, rank() OVER (ORDER BY x) AS r FROM a") == {"a": ("window",)}
    assert of("SELECT x FROM a ORDER BY x LIMIT 2") == {"a": ("LIMIT",)}
    assert of("SELECT x FROM a ORDER BY x OFFSET 2") == {"a": ("LIMIT",)}
    assert of("SELECT DISTINCT ON (x) x, y FROM a ORDER BY x, y") == {"a": ("DISTINCT ON",)}


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("LEFT", (), ("outer join",)),
        ("RIGHT", ("outer join",), ()),
        ("FULL", ("outer join",), ("outer join",)),
    ],
)
def test_an_outer_join_is_not_monotone_on_the_side_that_it_pads(
    kind: str, left: tuple[str, ...], right: tuple[str, ...]
) -> None:
    found = of(f"SELECT a.x, b.y FROM a {kind} JOIN b ON a.x = b.x")
    assert found == {"a": left, "b": right}


def test_a_subquery_in_the_condition_of_an_outer_join_is_not_monotone() -> None:
    found = of("SELECT a.x, b.y FROM a LEFT JOIN b ON b.x IN (SELECT x FROM c)")
    assert found == {"a": (), "b": ("outer join",), "c": ("outer join",)}


def test_a_scalar_subquery_is_not_monotone_inside() -> None:
    inside = ("scalar subquery", "aggregate")
    assert of("SELECT x FROM a WHERE x = (SELECT max(x) FROM b)") == {"a": (), "b": inside}
    assert of("SELECT x, (SELECT max(x) FROM b) AS m FROM a") == {"a": (), "b": inside}
    found = of("SELECT x FROM a WHERE (SELECT y FROM c WHERE c.x = a.x) IN (SELECT x FROM b)")
    assert found == {"a": (), "b": (), "c": ("scalar subquery",)}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM a WHERE y > 0 OR {}",
        "SELECT x FROM a WHERE CASE WHEN {} THEN y > 0 ELSE y < 0 END",
        "SELECT x FROM a WHERE NOT (y > 0 AND {})",
        "SELECT x, {} AS some FROM a",
    ],
)
def test_a_subquery_inside_an_expression_is_not_monotone(query: str) -> None:
    exists = "EXISTS (SELECT FROM b WHERE b.x = a.x)"
    assert of(query.format(exists)) == {"a": (), "b": ("EXISTS inside an expression",)}
    found = of(query.format("x IN (SELECT x FROM b)"))
    assert found == {"a": (), "b": ("IN, ANY or ALL inside an expression",)}


def test_lateral_goes_by_the_place_of_each_side() -> None:
    inner = "SELECT y FROM b WHERE b.x = a.x"
    assert of(f"SELECT l.y FROM a, LATERAL ({inner}) AS l") == {"a": (), "b": ()}
    found = of(f"SELECT l.y FROM a LEFT JOIN LATERAL ({inner}) AS l ON true")
    assert found == {"a": (), "b": ("outer join",)}
    found = of(f"SELECT l.y FROM a, LATERAL ({inner} ORDER BY y LIMIT 1) AS l")
    assert found == {"a": (), "b": ("LIMIT",)}
    assert of("SELECT g FROM a, generate_series(1, a.x) AS g") == {"a": ()}


def test_what_is_not_monotone_is_found_at_any_depth() -> None:
    found = of(
        "SELECT d.x FROM (SELECT x FROM (SELECT x, count(*) AS n FROM a GROUP BY x) AS g"
        " WHERE n > 1) AS d JOIN b ON b.x = d.x"
    )
    assert found == {"a": ("aggregate",), "b": ()}
    found = of("SELECT x FROM a WHERE NOT EXISTS (SELECT x FROM b EXCEPT SELECT x FROM c)")
    assert found == {"a": (), "b": ("NOT EXISTS",), "c": ("NOT EXISTS", "EXCEPT")}


def test_a_relation_that_is_read_twice_has_the_operators_of_both() -> None:
    found = of("SELECT x FROM a WHERE NOT EXISTS (SELECT FROM a AS o WHERE o.x = a.y)")
    assert found == {"a": ("NOT EXISTS",)}
    found = of("SELECT x FROM a EXCEPT SELECT max(x) FROM a")
    assert found == {"a": ("EXCEPT", "aggregate")}


def test_recursion_with_negation_of_an_outside_table() -> None:
    found = of(
        "WITH RECURSIVE r AS (SELECT x, y FROM a UNION SELECT r.x, b.y FROM r JOIN b ON b.x = r.y"
        " WHERE NOT EXISTS (SELECT FROM c WHERE c.x = b.x)) SELECT x, y FROM r"
    )
    assert found == {"a": (), "b": (), "c": ("NOT EXISTS",)}
    found = of(
        "WITH RECURSIVE r AS (SELECT x FROM a UNION SELECT b.y FROM r JOIN b ON b.x = r.x)"
        " SELECT count(*) AS n FROM r"
    )
    assert found == {"a": ("aggregate",), "b": ("aggregate",)}


X = Column("x", INTEGER)


def scan(relation: str) -> Scan:
    return Scan(relation, (("c1", X),))


def test_recursion_that_is_not_monotone_in_itself_is_so_in_all_that_it_reads() -> None:
    step = SetOperation(scan("b"), scan("r"), "except", once=True)
    found = classify(Recursive("r", (X,), scan("a"), step, once=True))
    assert found == (Edge("a", ("EXCEPT",)), Edge("b", ("EXCEPT",)))
    # The self-reference on the left of EXCEPT takes nothing away.
    step = SetOperation(scan("r"), scan("b"), "except", once=True)
    found = classify(Recursive("r", (X,), scan("a"), step, once=True))
    assert found == (Edge("a"), Edge("b", ("EXCEPT",)))


def test_an_operator_that_is_not_known_is_not_monotone() -> None:
    assert classify(Negate(scan("a"))) == (Edge("a", ("Negate",)),)


def test_the_truth_table_has_every_operator_that_can_be_named() -> None:
    """Every word that some query above is given stands in the table of the documents, too."""
    shown = {word for query in QUERIES for edge in edges(query) for word in edge.operators}
    assert shown == {
        "NOT EXISTS",
        "NOT IN",
        "ALL",
        "EXISTS inside an expression",
        "IN, ANY or ALL inside an expression",
        "scalar subquery",
        "EXCEPT",
        "EXCEPT ALL",
        "INTERSECT ALL",
        "aggregate",
        "window",
        "LIMIT",
        "DISTINCT ON",
        "outer join",
    }


@pytest.mark.parametrize("query", QUERIES)
def test_an_edge_for_every_relation_that_is_read(query: str) -> None:
    named = {name for name in "abc" if re.search(rf"(FROM|JOIN|,) {name}\b", query)}
    assert {edge.relation for edge in classify(bind(query, Tables()).written)} == named
