"""Which way a refresh takes through recursions: from the records alone, nothing is run."""

from __future__ import annotations

import pytest

from headrace.catalog.records import StreamTable
from headrace.engine.steps import ComputeLoop
from headrace.query import BoundColumn, BoundTable, bind
from headrace.refresh.plan import decide, plan_refresh
from headrace.relations.definition import InputSchema, new_definition
from headrace.types import INTEGER

EDGES = BoundTable(
    "r_edges",
    "public",
    "edges",
    tuple(BoundColumn(name, f"c{i}", INTEGER, "integer") for i, name in enumerate("ab", 1)),
    (),
)
SCHEMA = InputSchema((EDGES,), (), frozenset(), ("public",))
STEP = "SELECT r.a, e.b FROM r JOIN edges AS e ON e.a = r.b"
FREE = f"{STEP} WHERE NOT EXISTS (SELECT FROM edges AS x WHERE x.a = e.b AND x.b = 0)"
ONCE = "SELECT DISTINCT r.a, e.b FROM r JOIN edges AS e ON e.a = r.b"


def loop_of(union: str, step: str, *, follow: bool, epoch: int = 1) -> ComputeLoop:
    query = f"WITH RECURSIVE r AS (SELECT a, b FROM edges {union} {step}) SELECT a, b FROM r"
    table = StreamTable("x", "public", "x", query, (), ("r_edges",), epoch=epoch)
    definition = new_definition("x", bind(query, SCHEMA), SCHEMA)
    changed = frozenset({"r_edges"})
    decision = decide((table,), None, changed)
    step_, _ = plan_refresh(table, definition, decision, changed, follow=follow)
    assert isinstance(step_, ComputeLoop)
    return step_


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_a_recursion_that_takes_nothing_away_is_followed(union: str) -> None:
    for follow in (True, False):
        assert loop_of(union, STEP, follow=follow).mode == "DIFFERENTIAL"


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_stratified_dred_off_recomputes_a_stratified_recursion(union: str) -> None:
    assert loop_of(union, FREE, follow=True).mode == "DIFFERENTIAL"
    off = loop_of(union, FREE, follow=False)
    assert (off.mode, "stratified_dred" in off.reason) == ("FULL", True)
    first = loop_of(union, FREE, follow=False, epoch=0)
    assert (first.mode, first.reason) == ("FULL", "first refresh")


def test_an_obstacle_is_the_reason_whatever_is_set() -> None:
    for follow in (True, False):
        loop = loop_of("UNION ALL", ONCE, follow=follow)
        assert (loop.mode, loop.loop) == ("FULL", None)
        assert "DISTINCT or GROUP BY" in loop.reason
