"""Loops taken in change by change, against their definitions, on random graphs."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from headrace.algebra.scalar import Column
from headrace.delta.fixed_point import NotConverged, Rounds
from headrace.plan.evaluate import Bag
from headrace.plan.loop import Loop, obstacle
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    OuterSemiAntiJoin,
)
from headrace.types import BIGINT
from tests.delta.loop_examples import (
    PHYSICAL,
    SETS,
    changed,
    column,
    levels,
    random_rows,
    scan,
    step,
    unblocked,
)
from tests.delta.loops import PureMachine, least


def check(loop: Loop, random: Random, nodes: int, *, forward: bool = False) -> bool:
    """Several changes after each other; whether some row was lost."""
    outside = ("edges", "blocked", "other")
    now = {name: random_rows(random, nodes, 2 * nodes, forward=forward) for name in outside}
    rows = dict(least(loop, PHYSICAL, now))
    machine = PureMachine(loop, PHYSICAL, {name: Counter() for name in loop.relations} | now, now)
    assert Rounds(loop, machine, 200).full().changes == rows
    shrunk = False
    for _ in range(4):
        moved = frozenset(name for name in outside if random.random() < 0.7)
        after = {
            name: changed(random, bag, nodes, forward=forward) if name in moved else bag
            for name, bag in now.items()
        }
        machine = PureMachine(loop, PHYSICAL, {**now, **rows}, after)
        found = Rounds(loop, machine, 200).changed(moved)
        wanted = least(loop, PHYSICAL, after)
        for name in loop.relations:
            total = Counter(rows[name])
            for row, weight in found.changes[name].items():
                total[row] += weight
                shrunk |= weight < 0
            assert Counter({r: n for r, n in total.items() if n}) == wanted[name]
        now, rows = after, dict(wanted)
    return shrunk


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(15))
def test_loop_over_sets(name: str, seed: int) -> None:
    random = Random(f"{name}/{seed}")
    check(SETS[name], random, random.randint(2, 6))


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_loop_over_levels(seed: int, *, blocked: bool) -> None:
    random = Random(f"levels/{seed}")
    check(levels(blocked=blocked), random, random.randint(2, 7), forward=True)


def test_some_rows_are_lost() -> None:
    """Else the tests above would show nothing about deletes."""
    assert any(check(SETS["transitive closure"], Random(seed), 5) for seed in range(3))


def test_rows_that_only_support_each_other_go() -> None:
    loop = SETS["from one node"]
    nothing: Bag = Counter()
    cycle: Bag = Counter({(1, 2): 1, (2, 1): 1})
    before = {"edges": cycle + Counter({(0, 1): 1}), "blocked": nothing, "other": nothing}
    rows = least(loop, PHYSICAL, before)
    assert rows["reach"] == Counter({(0, 1): 1, (0, 2): 1})
    machine = PureMachine(loop, PHYSICAL, {**before, **rows}, {**before, "edges": cycle})
    found = Rounds(loop, machine, 200).changed(frozenset({"edges"}))
    assert found.changes["reach"] == Counter({(0, 1): -1, (0, 2): -1})


def test_levels_that_a_cycle_outside_of_reach_does_not_keep_alive() -> None:
    """The edge into a cycle is replaced by one out of it: PostgreSQL never goes round."""
    loop = levels()
    nothing: Bag = Counter()
    before = {"edges": Counter({(0, 1): 1, (1, 2): 1}), "blocked": nothing, "other": nothing}
    after = {**before, "edges": Counter({(1, 2): 1, (2, 1): 1})}
    rows = least(loop, PHYSICAL, before)
    machine = PureMachine(loop, PHYSICAL, {**before, **rows}, after)
    found = Rounds(loop, machine, 50).changed(frozenset({"edges"}))
    assert found.changes["paths"] == Counter(dict.fromkeys(rows["paths"], -1))


def test_a_loop_without_end() -> None:
    loop = levels()
    nothing: Bag = Counter()
    cyclic = {"edges": Counter({(0, 1): 1, (1, 1): 1}), "blocked": nothing, "other": nothing}
    machine = PureMachine(loop, PHYSICAL, {**cyclic, "paths": nothing}, cyclic)
    with pytest.raises(NotConverged) as raised:
        Rounds(loop, machine, 20).full()
    assert raised.value.iterations == 21


def test_deleting_and_deriving_may_each_take_all_rounds() -> None:
    """Two ways into a chain: without one, all of it is deleted first and then derived again."""
    loop = SETS["from one node"]
    nothing: Bag = Counter()
    chain = Counter({(n, n + 1): 1 for n in range(1, 30)}) + Counter({(0, 1): 1, (0, 99): 1})
    before = {"edges": chain + Counter({(99, 1): 1}), "blocked": nothing, "other": nothing}
    rows = least(loop, PHYSICAL, before)
    machine = PureMachine(loop, PHYSICAL, {**before, **rows}, {**before, "edges": chain})
    found = Rounds(loop, machine, 40).changed(frozenset({"edges"}))
    assert (found.changes["reach"], found.iterations) == (nothing, 60)


def test_what_a_loop_cannot_follow() -> None:
    reach = frozenset({"reach"})
    counted = Aggregate(
        scan("reach", "r"), (column("r1"),), (AggregateCall(Column("n", BIGINT), "count"),)
    )
    once = Aggregate(scan("reach", "r"), (column("r1"), column("r2")), ())
    assert obstacle(counted, reach, levels=False) == "an aggregate"
    assert obstacle(once, reach, levels=False) is None
    assert obstacle(once, reach, levels=True) == "DISTINCT or GROUP BY"
    assert obstacle(step("reach"), reach, levels=True) is None
    itself = step("reach", "reach")
    assert obstacle(itself, reach, levels=True, linear=reach) == "a join with itself"
    assert obstacle(itself, reach, levels=False, linear=reach) == "a join with itself"
    assert obstacle(itself, reach, levels=False) is None
    met = OuterSemiAntiJoin(scan("reach", "r"), scan("reach", "q"), "semi")
    assert obstacle(met, reach, levels=False, linear=reach) == "a match in itself"
    assert obstacle(met, reach, levels=False) is None
    assert obstacle(unblocked("reach"), reach, levels=False) is None
    hidden = OuterSemiAntiJoin(scan("edges", "e"), scan("reach", "r"), "anti")
    assert obstacle(hidden, reach, levels=False) == "NOT EXISTS"
    assert obstacle(hidden, frozenset({"edges"}), levels=False) is None
