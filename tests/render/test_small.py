"""Which side of a join is hashed in a query of one partition."""

from __future__ import annotations

import pytest

from headrace.algebra.scalar import Column
from headrace.functions import call
from headrace.plan.operators import (
    Aggregate,
    FullJoin,
    Join,
    Net,
    Operator,
    OuterSemiAntiJoin,
    Part,
    Restrict,
    Scan,
    UnionAll,
    Version,
)
from headrace.render import render
from headrace.render.matches import small_side
from headrace.types import INTEGER

A, B = Column("a", INTEGER), Column("b", INTEGER)
SAME = call("=", A, B)


def scan(column: Column, version: Version) -> Scan:
    return Scan("r", (("c1", column),), version)


CHANGE, STATE = scan(A, "change"), scan(B, "after")
OTHER_CHANGE, OTHER_STATE = scan(B, "found"), scan(A, "before")


@pytest.mark.parametrize(
    ("join", "side"),
    [
        (Join(CHANGE, STATE, SAME), 0),
        (Join(OTHER_STATE, OTHER_CHANGE, SAME), 1),
        (Join(OTHER_STATE, STATE, SAME), None),
        (Join(CHANGE, STATE), None),
        (Join(Part(Net(CHANGE), "added"), STATE, SAME), 0),
        (Join(UnionAll((CHANGE, OTHER_STATE)), STATE, SAME), None),
        (Join(Aggregate(CHANGE, (A,), ()), STATE, SAME), None),
        (OuterSemiAntiJoin(CHANGE, STATE, "left", SAME), 0),
        (OuterSemiAntiJoin(CHANGE, STATE, "anti", SAME), None),
        (OuterSemiAntiJoin(OTHER_STATE, OTHER_CHANGE, "semi", SAME), 1),
        (OuterSemiAntiJoin(OTHER_STATE, OTHER_CHANGE, "left", SAME), None),
        (FullJoin(CHANGE, STATE, SAME), None),
    ],
)
def test_the_side_that_is_hashed(
    join: Join | OuterSemiAntiJoin | FullJoin, side: int | None
) -> None:
    assert small_side(join) == side


@pytest.mark.parametrize(
    ("plan", "hint"),
    [
        (Join(CHANGE, STATE, SAME), "SHUFFLE_HASH(`q1`), COALESCE(1)"),
        (Join(OTHER_STATE, OTHER_CHANGE, SAME), "SHUFFLE_HASH(`q2`), COALESCE(1)"),
        (Restrict(OTHER_STATE, OTHER_CHANGE, ((A, B),)), "SHUFFLE_HASH(`q2`), COALESCE(1)"),
    ],
)
def test_hints_are_for_one_partition(plan: Operator, hint: str) -> None:
    assert f"/*+ {hint} */" in " ".join(render(plan, one_partition=True).split())
    assert "/*+" not in render(plan)


def test_a_union_needs_no_hint() -> None:
    """Spark sees by itself that a union of rows in one partition has one."""
    assert "/*+" not in render(UnionAll((CHANGE, OTHER_STATE)), one_partition=True)


def test_a_key_that_several_columns_are_compared_with_is_taken_once() -> None:
    pairs = Scan("r", (("c1", A), ("c2", Column("c", INTEGER))), "before")
    keys = tuple((column, B) for column in pairs.columns)
    text = " ".join(render(Restrict(pairs, OTHER_CHANGE, keys), one_partition=True).split())
    assert "( SELECT `b` FROM (" in text
    assert "GROUP BY `b` ) AS `q2`" in text
    compared = (f"`q1`.`{name}` IS NOT DISTINCT FROM `q2`.`b`" for name in ("a", "c"))
    assert f"ON {' AND '.join(compared)}" in text
