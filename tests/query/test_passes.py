"""The passes change the work, never the columns; and a second run finds nothing to do."""

from __future__ import annotations

import pytest

from headrace.algebra.scalar import Call, Column
from headrace.functions import can_raise
from headrace.plan.describe import describe, describe_scalar
from headrace.plan.operators import Filter, Join, Operator, Project, Scan, UnionAll
from headrace.plan.passes import PASSES, improve, prune_columns, push_filters
from headrace.plan.passes.push_filters import conjuncts
from headrace.query import bind
from headrace.types import BOOLEAN, INTEGER
from tests.query.golden import Golden, goldens
from tests.query.shop import Shop


def nodes(plan: Operator) -> list[Operator]:
    return [plan, *(node for child in plan.children for node in nodes(child))]


@pytest.mark.parametrize("golden", goldens(), ids=lambda golden: golden.id)
def test_columns_stay_and_nothing_is_left_to_do(golden: Golden) -> None:
    written = bind(golden.query, Shop()).written
    for apply in PASSES:
        once = apply(written)
        assert once.columns == written.columns
        assert describe(apply(once)) == describe(once)
    assert improve(improve(written)) == improve(written)


@pytest.mark.parametrize("golden", goldens(), ids=lambda golden: golden.id)
def test_nothing_that_can_raise_is_below_a_join(golden: Golden) -> None:
    for join in nodes(bind(golden.query, Shop()).plan):
        if isinstance(join, Join):
            below = [node for child in join.children for node in nodes(child)]
            assert not any(isinstance(n, Filter) and can_raise(n.condition) for n in below)


def test_what_can_raise_is_computed_above_joins() -> None:
    query = "SELECT r FROM (SELECT id, 1 / qty AS r FROM orders) q JOIN lines l ON l.orders = q.id"
    for join in nodes(bind(query, Shop()).plan):
        if isinstance(join, Join):
            below = [node for child in join.children for node in nodes(child)]
            projects = [node for node in below if isinstance(node, Project)]
            assert not any(can_raise(scalar) for p in projects for _, scalar in p.outputs)


def test_what_can_raise_of_groups_stays_with_them() -> None:
    query = (
        "SELECT r FROM (SELECT customer, 1 / count(note) AS r FROM orders GROUP BY customer) q"
        " JOIN customers c ON c.id = q.customer"
    )
    (join,) = (node for node in nodes(bind(query, Shop()).plan) if isinstance(node, Join))
    assert isinstance(join.left, Project)
    assert any(can_raise(scalar) for _, scalar in join.left.outputs)


def test_expressions_are_not_computed_twice() -> None:
    query = "SELECT x || x AS a, x AS b FROM (SELECT note || 'x' AS x FROM orders) q"
    upper, lower = [n for n in nodes(bind(query, Shop()).plan) if isinstance(n, Project)]
    assert [type(scalar) for _, scalar in lower.outputs] == [Call]
    assert len(upper.outputs) == 2


def test_what_can_raise_is_computed_where_it_is_asked_for() -> None:
    query = (
        "SELECT CASE WHEN qty <> 0 THEN r END AS a, CASE WHEN qty > 5 THEN r END AS b"
        " FROM (SELECT qty, 10 / qty AS r FROM orders) q"
    )
    (project,) = [n for n in nodes(bind(query, Shop()).plan) if isinstance(n, Project)]
    assert all(isinstance(s, Call) and s.function == "case" for _, s in project.outputs)


def test_guard_and_guarded_keep_their_order() -> None:
    query = "SELECT id FROM orders WHERE qty <> 0 AND 10 / qty > 1 AND id > 0"
    upper, lower = [n for n in nodes(bind(query, Shop()).plan) if isinstance(n, Filter)]
    assert can_raise(upper.condition)
    assert not can_raise(lower.condition)


def test_having_on_keys_filters_rows() -> None:
    query = "SELECT item, count(*) FROM lines GROUP BY item HAVING item = 'a' AND count(*) > 1"
    text = describe(bind(query, Shop()).plan)
    assert text.index("Aggregate") < text.index("Filter (item_1_c2 = 'a')")
    assert text.index("Filter (count_v1 > 1)") < text.index("Aggregate")


def test_having_without_keys_stays_above() -> None:
    text = describe(bind("SELECT count(*) FROM lines HAVING 1 = 2", Shop()).plan)
    assert text.index("Filter") < text.index("Aggregate")


def test_union_all() -> None:
    a, b = Column("a", INTEGER), Column("b", BOOLEAN)
    one, two = (Scan(name, (("c1", a), ("c2", b))) for name in ("r1", "r2"))
    plan = Filter(UnionAll((one, two)), b)
    pushed = push_filters(plan)
    assert pushed == UnionAll((Filter(one, b), Filter(two, b)))
    assert prune_columns(pushed).columns == (a, b)


def condition_of(query: str) -> str:
    """The only filter or join condition of the improved plan."""
    (found,) = (
        node.condition
        for node in nodes(bind(query, Shop()).plan)
        if isinstance(node, Filter | Join) and node.condition is not None
    )
    return describe_scalar(found)


def test_constants_are_computed_and_what_raises_is_left() -> None:
    assert condition_of("SELECT id FROM orders WHERE qty <= 1 + 10") == "(qty_1_c5 <= 11)"
    kept = condition_of("SELECT id FROM orders WHERE qty <= 1 / 0")
    assert kept == "(qty_1_c5 <= (1 / 0))"


def test_a_join_inside_every_alternative_is_a_join() -> None:
    query = (
        "SELECT o.id FROM orders o, lines l WHERE (l.orders = o.id AND l.n = 1 AND o.qty > 0)"
        " OR (o.qty < 0 AND l.orders = o.id)"
    )
    (join,) = (node for node in nodes(bind(query, Shop()).plan) if isinstance(node, Join))
    assert join.condition is not None
    first, *others = conjuncts(join.condition)
    assert describe_scalar(first) == "(orders_2_c1 = id_1_c1)"
    assert len(others) == 1
    assert condition_of("SELECT id FROM orders WHERE qty > 1 OR (qty > 1 AND id = 1)") == (
        "(qty_1_c5 > 1)"
    )


@pytest.mark.parametrize(
    "branch",
    [
        "SELECT id FROM customers WHERE 1 = 2",
        "SELECT l.orders FROM lines l JOIN customers c ON c.id = l.orders WHERE false AND true",
        "SELECT c.id + 1 FROM (SELECT id FROM customers WHERE NULL::boolean) AS c",
    ],
)
def test_a_branch_that_is_never_true_reads_nothing(branch: str) -> None:
    def read(query: str) -> set[str]:
        return {n.relation for n in nodes(bind(query, Shop()).plan) if isinstance(n, Scan)}

    only = read("SELECT id FROM orders")
    assert read(f"SELECT id FROM orders UNION ALL {branch}") == only
    assert read(f"SELECT id FROM orders UNION {branch}") == only
    assert read(f"{branch} UNION ALL SELECT id FROM orders UNION ALL SELECT id FROM orders") == only
    assert read(f"{branch} UNION ALL {branch}") == read(branch), "something stays"
