"""Restrictions of scans: which there are, and that a plan's rows are the same over what is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.delta.differentiate import stage_change
from headrace.delta.reduction import Restriction, reduction
from headrace.functions import call, chain
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Restrict,
    Scan,
    Top,
    UnionAll,
)
from headrace.plan.passes import improve
from headrace.plan.stages import cut_stages
from headrace.types import BIGINT, DOUBLE, INTEGER, Type
from tests.delta import join_plans, partition_plans
from tests.delta.reduced import but_whole, chosen, evaluated, reduced, scans
from tests.delta.stage_logs import reader
from tests.delta.worlds import World
from tests.forms import examples


@st.composite
def some_changed(draw: st.DrawFn, plan: Operator) -> Operator:
    """The plan with some of its scans reading a change."""
    if isinstance(plan, Scan):
        return replace(plan, version=draw(st.sampled_from(("after", "after", "change"))))
    return plan.with_children(*(draw(some_changed(child)) for child in plan.children))


@settings(max_examples=examples(500), deadline=None)
@given(
    st.one_of(join_plans.plans(3), partition_plans.plans()).flatmap(some_changed),
    join_plans.small_worlds(),
)
def test_rows_that_do_not_reach_a_change_do_not_matter(plan: Operator, world: World) -> None:
    read = reader(world, {})

    def there(scan: Scan) -> Bag:
        """Rows with positive weights under either name: a window counts them."""
        return read(replace(scan, version="before") if scan.version == "change" else scan)

    evaluated(plan, there)


def relation(name: str, first: str, second: str, type_: Type = INTEGER) -> Scan:
    return Scan(name, (("c1", Column(first, type_)), ("c2", Column(second, type_))))


LINES = relation("a", "line_order", "line_price")
ORDERS = relation("b", "order_key", "order_customer")
CUSTOMERS = relation("c", "customer_key", "customer_name")


def on(one: Scan, first: int, other: Scan, second: int) -> Scalar:
    return call("=", one.columns[first], other.columns[second])


def shortest(plan: Operator) -> tuple[Restriction, ...]:
    """For each scan the ways with the fewest steps, near scans first."""
    found = reduction(plan).restrictions
    least = {o.path: min(way.steps for way in found if way.path == o.path) for o in found}
    ways = (one for one in found if one.steps == least[one.path])
    return tuple(sorted(ways, key=lambda one: one.steps))


def by_relation(plan: Operator) -> dict[str, list[Restriction]]:
    found: dict[str, list[Restriction]] = {}
    for one in shortest(plan):
        found.setdefault(f"{one.scan.relation} {one.scan.version}", []).append(one)
    return found


def test_the_way_leads_outward_from_the_change() -> None:
    changed = replace(LINES, version="change")
    joined = Join(
        Join(CUSTOMERS, ORDERS, on(CUSTOMERS, 0, ORDERS, 1)), changed, on(ORDERS, 0, LINES, 0)
    )
    orders, customers = shortest(joined)
    assert (orders.scan, orders.columns) == (ORDERS, ("c1",))
    assert [origin.columns for origin in orders.origins] == [("c1",)]
    assert (customers.scan, customers.columns) == (CUSTOMERS, ("c1",))
    assert [(o.path, o.columns) for o in customers.origins] == [(orders.path, ("c2",))]


def test_every_term_of_a_delta_and_the_stored_groups_are_restricted() -> None:
    joined = Join(LINES, ORDERS, on(LINES, 0, ORDERS, 0))
    total = AggregateCall(Column("total", BIGINT), "sum", LINES.columns[1])
    (stage,) = cut_stages(Aggregate(joined, (ORDERS.columns[1],), (total,)), "x")
    change = stage_change(stage, frozenset({"a", "b"}))
    found = by_relation(change)
    assert {name: [one.columns for one in ways] for name, ways in found.items()} == {
        "a before": [("c1",)],
        "b after": [("c1",)],
        "x before": [("k1",)],
    }
    (groups,) = found["x before"]
    # The key is a column of orders: as found for the changed lines, and as changed itself.
    paths = scans(change)
    assert {paths[o.path].version for o in groups.origins} == {"after", "change"}
    assert groups.null_safe


def test_columns_of_a_key_that_one_table_has_are_looked_up_together() -> None:
    """Each alone is of little use where many rows share it."""
    joined = Join(LINES, ORDERS, on(LINES, 0, ORDERS, 0))
    keys = (*ORDERS.columns, LINES.columns[1])
    count = AggregateCall(Column("count", BIGINT), "count")
    (stage,) = cut_stages(Aggregate(joined, keys, (count,)), "x")
    found = reduction(stage_change(stage, frozenset({"a"}))).restrictions
    groups = [one.columns for one in found if one.scan.relation == "x"]
    assert sorted(groups) == [("k1", "k2"), ("k3",)]


@pytest.mark.parametrize("kind", ["left", "anti"])
def test_a_side_that_is_kept_without_a_match_is_not_restricted_by_it(kind: str) -> None:
    plan = OuterSemiAntiJoin(
        LINES, replace(ORDERS, version="change"), kind, on(LINES, 0, ORDERS, 0)
    )
    assert reduction(plan).restrictions == ()


def test_a_key_may_be_of_nulls_that_pad() -> None:
    changed = replace(LINES, version="change")
    padded = OuterSemiAntiJoin(changed, ORDERS, "left", on(LINES, 0, ORDERS, 0))
    plan = Restrict(CUSTOMERS, padded, ((CUSTOMERS.columns[0], ORDERS.columns[1]),))
    customers = by_relation(plan)["c after"][0]
    assert customers.padded and customers.null_safe


def test_two_equal_columns_are_one_key() -> None:
    changed = replace(LINES, version="change")
    both = call("and", on(LINES, 0, ORDERS, 0), on(LINES, 1, ORDERS, 1))
    (found,) = reduction(Join(changed, ORDERS, both)).restrictions
    assert found.columns == ("c1", "c2")
    assert [origin.columns for origin in found.origins] == [("c1", "c2")]


def test_a_column_that_equals_two_of_the_other_side_is_a_key_for_each() -> None:
    """As in t.id = m.tid AND t.y = m.tid: the keys cannot have that column twice."""
    changed = replace(LINES, version="change")
    both = call("and", on(LINES, 0, ORDERS, 0), on(LINES, 1, ORDERS, 0))
    found = reduction(Join(changed, ORDERS, both)).restrictions
    assert [one.columns for one in found] == [("c1",), ("c1",)]
    assert [[o.columns for o in one.origins] for one in found] == [[("c1",)], [("c2",)]]


@pytest.mark.parametrize("changed", ["a", "b"])
def test_a_key_may_be_computed_on_either_side(changed: str) -> None:
    """From rows of the change it is computed; else the expression is solved for its column."""
    one = Literal(1, INTEGER)
    before = call("=", LINES.columns[0], call("-", ORDERS.columns[0], one))
    plan = improve(Join(LINES, ORDERS, before))
    scans_ = {
        path: replace(scan, version="change" if scan.relation == changed else "after")
        for path, scan in scans(plan).items()
    }
    plan = with_scans(plan, (), scans_)
    (found,) = reduction(plan).restrictions
    assert (found.scan.relation, found.columns) == ("b" if changed == "a" else "a", ("c1",))
    nothing: Bag = Counter()
    rows: Bag = Counter({(key, key): 1 for key in (None, 1, 2, 3, -(2**31), 2**31 - 1)})
    few: Bag = Counter({(key, 0): 1 for key in (None, 2, -(2**31), 2**31 - 1)})
    at = World({"a": nothing, "b": nothing, "c": nothing}, {"a": rows, "b": rows, "c": nothing})
    at.after[changed] = few
    left = chosen(plan, reader(at, {}))
    keys = {row[0] for row in left[found.path]}
    assert keys == ({3, 1 - 2**31} & {1, 2, 3} if changed == "a" else {1, 2**31 - 2} & {1, 2, 3})
    evaluated(plan, reader(at, {}))


def with_scans(plan: Operator, path: tuple[int, ...], by: dict[tuple[int, ...], Scan]) -> Operator:
    if path in by:
        return by[path]
    children = (with_scans(one, (*path, i), by) for i, one in enumerate(plan.children))
    return plan.with_children(*children)


def test_keys_come_from_every_part_of_a_union() -> None:
    parts = tuple(
        Project(replace(LINES, version=version), ((Column("key", INTEGER), LINES.columns[0]),))
        for version in ("change", "change")
    )
    union = UnionAll(parts)
    joined = Join(union, ORDERS, call("=", union.columns[0], ORDERS.columns[0]))
    (found,) = reduction(joined).restrictions
    assert len(found.origins) == 2


@pytest.mark.parametrize(
    "plan",
    [
        Join(replace(LINES, version="change"), ORDERS),
        Join(
            replace(LINES, version="change"),
            ORDERS,
            call("<", LINES.columns[0], ORDERS.columns[0]),
        ),
        Join(
            Project(
                replace(LINES, version="change"),
                ((Column("next", INTEGER), call("+", LINES.columns[0], Literal(1, INTEGER))),),
            ),
            ORDERS,
            call("=", Column("next", INTEGER), ORDERS.columns[0]),
        ),
        Join(
            relation("a", "x", "y", DOUBLE),
            replace(relation("b", "u", "v", DOUBLE), version="change"),
            call("=", Column("x", DOUBLE), Column("u", DOUBLE)),
        ),
    ],
    ids=["no condition", "not an equality", "a computed key", "floats"],
)
def test_what_cannot_be_restricted(plan: Operator) -> None:
    assert reduction(plan).restrictions == ()


def test_only_whole_groups_are_taken_away() -> None:
    changed = replace(LINES, version="change")
    first = Top(ORDERS, (ORDERS.columns[0],), (), (), limit=1)
    (found,) = reduction(Join(changed, first, on(LINES, 0, ORDERS, 0))).restrictions
    assert found.columns == ("c1",)
    other = reduction(Join(changed, first, on(LINES, 0, ORDERS, 1)))
    assert other.restrictions == ()
    assert other.whole == {("b", "after")}


def test_what_is_left() -> None:
    changed = replace(LINES, version="change")
    kept = Filter(ORDERS, call("<", ORDERS.columns[1], Literal(9, INTEGER)))
    plan = Join(changed, kept, on(LINES, 0, ORDERS, 0))
    nothing: Counter[tuple[int, ...]] = Counter()
    world = World(
        {"a": nothing, "b": Counter({(1, 1): 1, (2, 2): 1, (None, 3): 1}), "c": nothing},
        {
            "a": Counter({(1, 5): 1, (None, 5): 1}),
            "b": Counter({(1, 1): 1, (2, 2): 1, (None, 3): 1}),
            "c": nothing,
        },
    )
    assert [path for path, _ in reduction(plan).conditions] == [(1, 0)]
    left = chosen(plan, reader(world, {}))
    assert left[(1, 0)] == Counter({(1, 1): 1})


def test_conditions_make_keys_fewer() -> None:
    """Of changed lines only dear ones matter, so the orders of others do not, either."""
    dear = Filter(
        replace(LINES, version="change"), call(">", LINES.columns[1], Literal(5, INTEGER))
    )
    plan = Join(dear, ORDERS, on(LINES, 0, ORDERS, 0))
    nothing: Bag = Counter()
    orders: Bag = Counter({(1, 1): 1, (2, 2): 1})
    world = World(
        {"a": nothing, "b": orders, "c": nothing},
        {"a": Counter({(1, 5): 1, (2, 6): 1}), "b": orders, "c": nothing},
    )
    assert chosen(plan, reader(world, {}))[(1,)] == Counter({(2, 2): 1})


def test_alternatives_over_both_sides_make_keys_fewer() -> None:
    """What every alternative asks of a column is asked of it before the sides are joined."""
    value, kind = LINES.columns[1], ORDERS.columns[1]

    def both(least: int, wanted: int) -> Scalar:
        tests = [
            call(">", value, Literal(least, INTEGER)),
            call("=", kind, Literal(wanted, INTEGER)),
        ]
        return chain("and", tests)

    changed = replace(LINES, version="change")
    joined = on(LINES, 0, ORDERS, 0)
    alternatives = chain("or", [both(5, 1), both(7, 2)])
    nothing: Bag = Counter()
    orders: Bag = Counter({(1, 1): 1, (2, 2): 1, (3, 1): 1})
    world = World(
        {"a": nothing, "b": orders, "c": nothing},
        {"a": Counter({(1, 5): 1, (2, 6): 1, (3, None): 1}), "b": orders, "c": nothing},
    )
    for plan in (
        Join(changed, ORDERS, chain("and", [joined, alternatives])),
        Filter(Join(changed, ORDERS, joined), alternatives),
    ):
        path = (0, 1) if isinstance(plan, Filter) else (1,)
        assert chosen(plan, reader(world, {}))[path] == Counter({(2, 2): 1})
    one_sided = chain("or", [both(5, 1), call("=", kind, Literal(2, INTEGER))])
    plan = Join(changed, ORDERS, chain("and", [joined, one_sided]))
    assert {path for path, _ in reduction(plan).conditions} == {(1,)}


def test_demands_follow_only_what_is_equal_as_it_is_stored() -> None:
    """0 equals -0.0, but it is not found among the keys as such."""
    floats = relation("f", "f_key", "f_value", DOUBLE)
    joined = Join(ORDERS, floats, call("=", ORDERS.columns[0], floats.columns[0]))
    touched = Project(
        replace(LINES, version="change"), ((Column("touched", INTEGER), LINES.columns[0]),)
    )
    plan = Restrict(joined, touched, ((ORDERS.columns[0], touched.columns[0]),))
    assert {one.scan.relation for one in reduction(plan).restrictions} == {"b"}


def test_an_error_is_not_made_up_where_a_match_is_left_out() -> None:
    """Orders that do not matter keep their matches below an expression that can raise."""
    changed = replace(LINES, version="change")
    without = OuterSemiAntiJoin(ORDERS, CUSTOMERS, "anti", on(ORDERS, 1, CUSTOMERS, 0))
    quotient = Column("quotient", INTEGER)
    value = call("/", Literal(1, INTEGER), ORDERS.columns[1])
    divided = Project(without, ((ORDERS.columns[0], ORDERS.columns[0]), (quotient, value)))
    plan = Join(changed, divided, on(LINES, 0, ORDERS, 0))
    assert ("c", "after") in reduction(plan).whole
    nothing: Bag = Counter()
    orders, customers = Counter({(1, 5): 1, (2, 0): 1}), Counter({(0, 0): 1, (7, 7): 1})
    world = World(
        {"a": nothing, "b": orders, "c": customers},
        {"a": Counter({(1, 1): 1}), "b": orders, "c": customers},
    )
    read = reader(world, {})
    whole = evaluate(plan, but_whole("b", read, reduced(plan, read)))
    assert net(Counter(whole)) == net(Counter(evaluate(plan, read)))
    # Where nothing can raise, its matches are looked up.
    calm = Join(changed, without, on(LINES, 0, ORDERS, 0))
    assert "c after" in by_relation(calm)
