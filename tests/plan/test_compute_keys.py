"""Joins compare columns: expressions are computed on the input that they read."""

from __future__ import annotations

import pytest

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import call
from headrace.plan.describe import describe
from headrace.plan.operators import FullJoin, Join, Operator, OuterSemiAntiJoin, Project, Scan
from headrace.plan.passes import compute_keys
from headrace.types import TEXT


def relation(name: str) -> Scan:
    return Scan(name, (("c1", Column(f"{name}_1", TEXT)), ("c2", Column(f"{name}_2", TEXT))))


A, B, C = relation("a"), relation("b"), relation("c")


def spelled(column: Scalar) -> Call:
    return call("||", column, Literal("x", TEXT))


def joins(plan: Operator) -> list[Join | OuterSemiAntiJoin | FullJoin]:
    own = [plan] if isinstance(plan, Join | OuterSemiAntiJoin | FullJoin) else []
    return [*own, *(join for child in plan.children for join in joins(child))]


@pytest.mark.parametrize(
    "join",
    [
        Join(A, B, call("=", spelled(A.columns[0]), B.columns[0])),
        Join(A, B, call("is not distinct from", spelled(A.columns[0]), spelled(B.columns[0]))),
        *(
            OuterSemiAntiJoin(A, B, kind, call("=", spelled(A.columns[0]), B.columns[0]))
            for kind in ("left", "semi", "anti")
        ),
        FullJoin(A, B, call("=", A.columns[0], spelled(B.columns[0]))),
        Join(
            Join(A, B, call("=", A.columns[0], B.columns[0])),
            C,
            call("=", spelled(B.columns[1]), C.columns[0]),
        ),
        Join(
            OuterSemiAntiJoin(A, B, "left", call("=", A.columns[0], B.columns[0])),
            C,
            call("=", spelled(B.columns[1]), C.columns[0]),
        ),
    ],
    ids=["inner", "null-safe", "left", "semi", "anti", "full", "deep", "padded"],
)
def test_every_join_compares_columns(join: Operator) -> None:
    plan = compute_keys(join)
    assert plan.columns == join.columns
    for one in joins(plan):
        assert isinstance(one.condition, Call)
        assert all(isinstance(side, Column) for side in one.condition.arguments), describe(plan)
    assert compute_keys(plan) == plan


def test_no_projection_parts_inner_joins() -> None:
    """They are put in another order for each change, and only where nothing is between them."""
    inner = Join(A, B, call("=", A.columns[0], spelled(B.columns[0])))
    plan = compute_keys(Join(inner, C, call("=", spelled(A.columns[1]), C.columns[0])))
    assert isinstance(plan, Project) and isinstance(plan.child, Join)
    assert isinstance(plan.child.left, Join)


def test_one_expression_is_computed_once() -> None:
    twice = [call("=", spelled(A.columns[0]), column) for column in B.columns]
    plan = compute_keys(Join(A, B, call("and", *twice)))
    (join,) = joins(plan)
    assert len(join.left.columns) == 3


@pytest.mark.parametrize(
    "condition",
    [
        call("=", call("||", A.columns[0], B.columns[0]), A.columns[1]),
        call("<", spelled(A.columns[0]), B.columns[0]),
    ],
    ids=["of both sides", "not an equality"],
)
def test_other_conditions_stay(condition: Scalar) -> None:
    plan = Join(A, B, condition)
    assert compute_keys(plan) == plan
