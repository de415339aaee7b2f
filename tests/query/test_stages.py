"""Where a plan is cut: at what has state, once for what is equal, and before it grows."""

from __future__ import annotations

import pytest

from headrace.delta.differentiate import relations_of, stage_change
from headrace.plan.describe import describe
from headrace.plan.operators import (
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
)
from headrace.plan.stages import Stage, cut_stages
from headrace.query import bind
from tests.query.shop import Shop


def stages(query: str) -> tuple[Stage, ...]:
    return cut_stages(bind(query, Shop()).plan, "x")


def joins(plan: Operator) -> int:
    here = isinstance(plan, (Join, OuterSemiAntiJoin, FullJoin, OuterSemiAntiJoinDelta))
    return here + sum(map(joins, plan.children))


def change_joins(found: tuple[Stage, ...]) -> int:
    """The joins of all stages' changes when everything changes."""
    moved: frozenset[str] = frozenset()
    total = 0
    for stage in found:
        moved |= relations_of(stage.region)
        total += joins(stage_change(stage, moved))
        moved |= {stage.relation}
    return total


def chained(kind: str, depth: int) -> str:
    """customers c0 … JOIN customers c1 …"""
    more = "".join(f" {kind} JOIN customers c{i} ON c{i}.id = c0.id" for i in range(1, depth + 1))
    return f"SELECT c0.id FROM customers c0{more}"


@pytest.mark.parametrize(
    "query",
    [
        "WITH q AS (SELECT customer, count(*) AS n FROM orders GROUP BY customer)"
        " SELECT a.n, b.n AS m FROM q a JOIN q b ON a.customer = b.n",
        "WITH q AS (SELECT customer, count(*) AS n FROM orders GROUP BY customer"
        " HAVING count(*) > 1) SELECT a.n, b.n AS m FROM q a LEFT JOIN q b ON a.customer = b.n",
        "SELECT n FROM (SELECT count(*) AS n, customer AS k FROM orders GROUP BY customer) a"
        " UNION ALL SELECT n + k FROM (SELECT count(*) AS n, customer AS k FROM orders"
        " GROUP BY customer) b",
    ],
)
def test_equal_groups_are_kept_once(query: str) -> None:
    first, last = stages(query)
    assert first.relation == "xh1"
    assert relations_of(last.region) == {"xh1"}


def test_groups_that_differ_are_kept_apart() -> None:
    query = (
        "SELECT a.n, b.n AS m FROM"
        " (SELECT customer, count(*) AS n FROM orders WHERE qty > 1 GROUP BY customer) a"
        " JOIN (SELECT customer, count(*) AS n FROM orders GROUP BY customer) b"
        " ON a.customer = b.n"
    )
    assert [stage.relation for stage in stages(query)] == ["xh1", "xh2", "x"]


def test_groups_read_under_different_conditions_are_kept_once() -> None:
    query = (
        "WITH q AS (SELECT customer, count(*) AS n FROM orders GROUP BY customer)"
        " SELECT a.n, b.n AS m FROM q a JOIN q b ON a.n = b.n"
        " WHERE a.customer = {} AND b.customer = {}"
    )
    first, last = stages(query.format(1, 2))
    assert "Filter ((customer_1_c2 = 1) or (customer_1_c2 = 2))" in describe(first.region)
    assert relations_of(last.region) == {"xh1"}
    first, last = stages(query.format(1, 1))
    assert "Filter (customer_1_c2 = 1)" in describe(first.region)
    whole = query.replace(" AND b.customer = {}", "").format(1)
    first, last = stages(whole)
    assert "Filter" not in describe(first.region)
    assert "Filter" in describe(last.region)


def test_a_union_is_read_without_branches_that_a_constant_excludes() -> None:
    query = (
        "WITH q AS (SELECT customer AS k, count(*) AS n, 'o' AS t FROM orders GROUP BY customer"
        " UNION ALL SELECT orders, count(*), 'l' FROM lines GROUP BY orders)"
        " SELECT a.n, b.n AS m, c.n AS o FROM q a, q b, q c WHERE a.t = 'o' AND b.t = 'o'"
        " AND c.t = 'l' AND a.k = b.k AND b.n = c.n AND a.k > 1"
    )
    orders, lines, last = stages(query)
    assert relations_of(orders.region) == {"r_orders"}
    assert relations_of(lines.region) == {"r_lines"}
    assert "UnionAll" not in describe(last.region)


def test_subqueries_over_the_same_rows_are_one_row() -> None:
    query = (
        "SELECT c.id, (SELECT count(*) FROM orders WHERE qty = 1) AS a,"
        " (SELECT avg(amount) FROM orders WHERE qty BETWEEN 2 AND 3) AS b,"
        " (SELECT max(amount) FROM orders WHERE qty BETWEEN 2 AND 3) AS c FROM customers c"
    )
    first, last = stages(query)
    assert relations_of(first.region) == {"r_orders"}
    assert describe(first.region).count("Scan") == 1
    text = "Filter ((qty_2_c5 = 1) or ((qty_2_c5 >= 2) and (qty_2_c5 <= 3)))"
    assert text in describe(first.region)
    assert joins(last.region) == 1


@pytest.mark.parametrize(
    "other",
    [
        "(SELECT count(*) FROM lines)",
        "(SELECT count(*) FROM orders WHERE 1 / qty > 0)",
        "(SELECT count(DISTINCT note) FROM orders)",
    ],
)
def test_other_subqueries_stay_apart_and_do_not_cut_what_they_stand_beside(other: str) -> None:
    query = f"SELECT c.id, (SELECT count(*) FROM orders) AS a, {other} AS b FROM customers c"
    *earlier, last = stages(query)
    assert all(joins(stage.region) == 0 for stage in earlier)
    assert joins(last.region) == 2


@pytest.mark.parametrize(("kind", "most"), [("INNER", 8), ("LEFT", 4)])
def test_a_stage_has_few_joins(kind: str, most: int) -> None:
    (only,) = stages(chained(kind, most))
    assert joins(only.region) == most
    cut = stages(chained(kind, 3 * most))
    assert all(joins(stage.region) <= most for stage in cut)
    assert len(cut) > 2


def test_what_is_looked_for_a_match_has_few_joins() -> None:
    nested = (
        "SELECT c.id FROM customers c LEFT JOIN (customers d LEFT JOIN (customers e"
        " LEFT JOIN customers f ON f.id = e.id) ON e.id = d.id) ON d.id = c.id"
    )
    first, last = stages(nested)
    assert joins(first.region) == 2
    assert joins(last.region) == 1


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL"])
def test_a_change_grows_with_its_plan(kind: str) -> None:
    few, many = (change_joins(stages(chained(kind, depth))) for depth in (10, 30))
    assert many <= 3.5 * few


def test_a_side_of_a_full_join_with_joins_of_its_own_is_computed_first() -> None:
    (only,) = stages(chained("FULL", 1))
    assert isinstance(only.region.children[0], FullJoin)
    cut = stages(chained("FULL", 3))
    assert [stage.relation for stage in cut] == ["xh2", "xh1", "x"]
    assert all(joins(stage.region) == 1 for stage in cut)


def test_a_match_that_can_raise_is_tried_on_pairs() -> None:
    (only,) = stages("SELECT o.id, l.n FROM orders o LEFT JOIN lines l ON o.qty + l.n > 2")
    assert joins(only.region) == 3
    query = (
        "SELECT o.id, l.n FROM orders o LEFT JOIN customers c ON c.id = o.customer"
        " LEFT JOIN lines l ON o.qty + l.n > c.id"
    )
    first, last = stages(query)
    assert joins(first.region) == 1
    assert relations_of(last.region) == {"xh1", "r_lines"}


@pytest.mark.parametrize(
    ("condition", "most"),
    [("c.id > (SELECT avg(id) FROM customers)", 3), ("c.id = (SELECT max(id) FROM customers)", 2)],
)
def test_what_is_compared_with_one_row_is_computed_before_it(condition: str, most: int) -> None:
    """No key leads from that row to others, unless they have to be equal."""
    found = stages(
        f"SELECT c.id FROM customers c WHERE {condition}"
        " AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)"
    )
    assert len(found) == most
    assert joins(found[-1].region) == (1 if most == 3 else 2)
