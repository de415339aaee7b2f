"""Equalities between the inputs of a join are keys, also where computing one could fail."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.algebra.scalar import Call, Column, Literal
from headrace.functions import EvaluationError, call, can_raise
from headrace.plan.evaluate import Bag, evaluate
from headrace.plan.operators import (
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Scan,
)
from headrace.plan.passes import improve
from headrace.types import INTEGER

LAST = 2**31 - 1
A = Scan("a", (("c1", Column("a1", INTEGER)), ("c2", Column("a2", INTEGER))))
B = Scan("b", (("c1", Column("b1", INTEGER)), ("c2", Column("b2", INTEGER))))
C = Scan("c", (("c1", Column("d1", INTEGER)), ("c2", Column("d2", INTEGER))))
ONE = Literal(1, INTEGER)
NEXT = call("=", A.columns[0], call("+", B.columns[0], ONE))
ROWS: dict[str, Bag] = {
    "a": Counter({(1, 1): 1, (2, 1): 2, (None, 1): 1, (-LAST - 1, 0): 1}),
    "b": Counter({(0, 0): 1, (1, 7): 1, (LAST, 7): 1, (None, 7): 1}),
    "c": Counter({(7, 7): 1}),
}


def read(scan: Scan) -> Bag:
    places = [int(name.removeprefix("c")) - 1 for name, _ in scan.fields]
    found: Bag = Counter()
    for row, weight in ROWS[scan.relation].items():
        found[tuple(row[place] for place in places)] += weight
    return found


def rows(plan: Operator) -> Bag:
    return evaluate(plan, read)


def nodes(plan: Operator) -> list[Operator]:
    return [plan, *(node for child in plan.children for node in nodes(child))]


@pytest.mark.parametrize(
    "plan",
    [
        Filter(Join(A, B), NEXT),
        Join(A, B, NEXT),
        Filter(Join(Join(A, C), B), NEXT),
        Filter(Project(Join(A, B), tuple((c, c) for c in A.columns + B.columns)), NEXT),
        OuterSemiAntiJoin(A, B, "left", NEXT),
        OuterSemiAntiJoin(A, B, "semi", NEXT),
        OuterSemiAntiJoin(A, B, "anti", NEXT),
        FullJoin(A, B, NEXT),
    ],
    ids=["filter", "join", "product", "project", "left", "semi", "anti", "full"],
)
def test_the_row_that_would_overflow_has_no_match(plan: Operator) -> None:
    """Instead of the error, which no row of the answer would have shown."""
    with pytest.raises(EvaluationError):
        rows(plan)
    better = improve(plan)
    assert not any(can_raise(scalar) for node in nodes(better) for scalar in node.scalars)
    del ROWS["b"][(LAST, 7)]
    try:
        expected = rows(plan)
    finally:
        ROWS["b"][(LAST, 7)] = 1
    found = rows(better)
    padded = (None, None, LAST, 7)
    if isinstance(plan, FullJoin):
        expected[padded] += 1
    assert found == expected


@pytest.mark.parametrize(
    "condition",
    [
        call("=", A.columns[0], call("+", A.columns[1], ONE)),
        call("=", call("+", A.columns[0], B.columns[0]), A.columns[1]),
        call("=", call("+", A.columns[0], ONE), Literal(3, INTEGER)),
        call("<", A.columns[0], call("+", B.columns[0], ONE)),
        call("is not distinct from", A.columns[0], call("+", B.columns[0], ONE)),
    ],
    ids=["one input", "both sides read one", "a constant", "not an equality", "NULL equals NULL"],
)
def test_other_conditions_fail_as_they_are_written(condition: Call) -> None:
    better = improve(Filter(Join(A, B), condition))
    assert any(can_raise(scalar) for node in nodes(better) for scalar in node.scalars)
