"""Planning a query costs work that grows with the query: counted in function calls, not in time.

The chains select two columns. The stages of full joins ON keep those of every condition below them,
and their SQL grows with that.
"""

from __future__ import annotations

import sys
from itertools import count
from types import FrameType

import pytest

from headrace.plan.describe import describe
from headrace.query import BoundColumn, BoundTable, bind
from headrace.refresh.plan import Decision, taking_in
from headrace.refresh.strategy import INCREMENTAL
from headrace.relations.definition import InputSchema, new_definition
from headrace.types import INTEGER

SHORT, LONG = 10, 30
NUMBERS = count()
COLUMNS = tuple(
    BoundColumn(name, f"c{i}", INTEGER, "integer") for i, name in enumerate(("id", "ref", "v"), 1)
)
SHAPES = {
    "full using": ("FULL JOIN t{i} USING (id)", "id, t0.v"),
    "full on": ("FULL JOIN t{i} ON t{i}.id = t{j}.ref", "t0.id, t0.v"),
    "inner using": ("JOIN t{i} USING (id)", "id, t0.v"),
    "inner on": ("JOIN t{i} ON t{i}.id = t{j}.ref", "t0.id, t0.v"),
    "left using": ("LEFT JOIN t{i} USING (id)", "id, t0.v"),
    "left on": ("LEFT JOIN t{i} ON t{i}.id = t{j}.ref", "t0.id, t0.v"),
}


def planned(joins: int, shape: str) -> None:
    """Plan a refresh of a chain of joins in which every table has changed."""
    tables = tuple(
        BoundTable(f"r{i}", "public", f"t{i}", COLUMNS, (("id",),)) for i in range(joins + 1)
    )
    schema = InputSchema(tables, (), frozenset(), ("public",))
    join, shown = SHAPES[shape]
    chain = " ".join(join.format(i=i, j=i - 1) for i in range(1, joins + 1))
    bound = bind(f"SELECT {shown} FROM t0 {chain}", schema)
    definition = new_definition(f"r_{shape}_{next(NUMBERS)}", bound, schema)
    describe(definition.plan, {})
    changed = frozenset(table.relation for table in tables)
    decision = Decision("DIFFERENTIAL", INCREMENTAL)
    now = set(changed)
    for stage in definition.stages:
        taking_in(stage, decision, frozenset(now))
        now.add(stage.relation)


def counted(joins: int, shape: str) -> int:
    """How many functions planning calls."""
    number = 0

    def count_calls(frame: FrameType, event: str, argument: object) -> None:
        nonlocal number
        number += event == "call"

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        planned(joins, shape)
    finally:
        sys.setprofile(before)
    return number


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_grow_with_the_query(shape: str) -> None:
    counted(2, shape)  # What is imported or remembered at first use is left out.
    few, many = counted(SHORT, shape), counted(LONG, shape)
    # Three times the joins: work that grows with their square would be nine times as much.
    assert many / few < (6.5 if shape == "full on" else 5), (few, many)
