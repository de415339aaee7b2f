"""Joins lead outward from the change, and no product of relations comes before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.algebra.scalar import Column
from headrace.delta.order_joins import connect_joins, order_joins
from headrace.functions import call
from headrace.plan.operators import Join, Operator, Project, Scan
from headrace.types import INTEGER


def relation(name: str) -> Scan:
    columns = (Column(f"{name}_1", INTEGER), Column(f"{name}_2", INTEGER))
    return Scan(name, (("c1", columns[0]), ("c2", columns[1])))


PART, SUPPLIER, LINE = relation("part"), relation("supplier"), relation("line")
BOTH = call(
    "and",
    call("=", PART.columns[0], LINE.columns[0]),
    call("=", SUPPLIER.columns[0], LINE.columns[1]),
)
# As in: FROM part, supplier, line WHERE …
WRITTEN = Join(Join(PART, SUPPLIER), LINE, BOTH)


def leaves(plan: Operator) -> list[str]:
    if isinstance(plan, Join):
        assert plan.condition is not None, "a product"
        return leaves(plan.left) + leaves(plan.right)
    if isinstance(plan, Project):
        return leaves(plan.child)
    assert isinstance(plan, Scan)
    return [f"{plan.relation} {plan.version}"]


@pytest.mark.parametrize(
    ("changed", "order"),
    [
        ("line", ["line change", "part after", "supplier after"]),
        ("part", ["part change", "line after", "supplier after"]),
        ("supplier", ["supplier change", "line after", "part after"]),
        ("", ["part after", "line after", "supplier after"]),
    ],
)
def test_each_relation_is_connected_with_those_before(changed: str, order: list[str]) -> None:
    def marked(scan: Scan) -> Scan:
        return replace(scan, version="change") if scan.relation == changed else scan

    term = Join(Join(marked(PART), marked(SUPPLIER)), marked(LINE), BOTH)
    ordered = order_joins(term)
    assert ordered.columns == WRITTEN.columns
    assert leaves(ordered) == order


def test_a_condition_that_can_raise_stays_where_it_is() -> None:
    risky = call("=", call("/", PART.columns[0], SUPPLIER.columns[0]), LINE.columns[0])
    plan = Join(Join(PART, SUPPLIER), LINE, risky)
    assert order_joins(plan) == plan


def test_what_is_equal_is_compared_with_the_change() -> None:
    """Supplier and line are equal through part alone, as written."""
    changed = replace(SUPPLIER, version="change")
    first = call("=", PART.columns[0], SUPPLIER.columns[0])
    second = call("=", PART.columns[0], LINE.columns[0])
    ordered = order_joins(Join(Join(PART, changed, first), LINE, second))
    assert isinstance(ordered, Project) and isinstance(ordered.child, Join)
    assert ordered.child.condition == call("=", SUPPLIER.columns[0], LINE.columns[0])
    assert leaves(ordered) == ["supplier change", "part after", "line after"]


def test_a_product_that_is_meant_stays() -> None:
    plan = Join(Join(PART, SUPPLIER), LINE)
    assert order_joins(plan) == plan


def test_joins_are_connected_only_where_that_spares_a_product() -> None:
    assert leaves(connect_joins(WRITTEN)) == ["part after", "line after", "supplier after"]
    on_line = call("=", SUPPLIER.columns[0], LINE.columns[1])
    connected = Join(Join(SUPPLIER, LINE, on_line), PART, BOTH)
    assert connect_joins(connected) is connected
