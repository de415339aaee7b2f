"""Loops taken in change by change, against their definitions, on random graphs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from headrace.algebra.scalar import Column, Literal
from headrace.delta.fixed_point import NotConverged, Rounds
from headrace.functions import call
from headrace.plan.evaluate import Bag
from headrace.plan.loop import Loop, Variable, obstacle, with_level
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    MatchJoin,
    Operator,
    Project,
    Scan,
    UnionAll,
)
from headrace.types import BIGINT, INTEGER
from tests.delta.loops import PureMachine, least

PAIRS = ("edges", "blocked", "other", "reach", "odd", "even", "pairs")
PHYSICAL: dict[str, tuple[str, ...]] = dict.fromkeys(PAIRS, ("c1", "c2"))
PHYSICAL["paths"] = ("c1", "c2", "l")


def column(name: str) -> Column:
    return Column(name, INTEGER)


def scan(relation: str, prefix: str) -> Scan:
    return Scan(relation, (("c1", column(f"{prefix}1")), ("c2", column(f"{prefix}2"))))


def shown(child: Operator, first: str, second: str) -> Project:
    return Project(child, ((column("o1"), column(first)), (column("o2"), column(second))))


def step(relation: str, over: str = "edges") -> Operator:
    """relation(x, y), over(y, z) → (x, z)"""
    joined = Join(scan(relation, "r"), scan(over, "e"), call("=", column("r2"), column("e1")))
    return shown(joined, "r1", "e2")


def base(over: str = "edges") -> Operator:
    return shown(scan(over, "b"), "b1", "b2")


def variable(relation: str, *branches: Operator) -> Variable:
    return Variable(relation, UnionAll(branches), ("c1", "c2"))


def unblocked(relation: str) -> Operator:
    """A step over edges that no row of `blocked` forbids."""
    same = call("and", call("=", column("e1"), column("x1")), call("=", column("e2"), column("x2")))
    free = MatchJoin(scan("edges", "e"), scan("blocked", "x"), "anti", same)
    joined = Join(scan(relation, "r"), free, call("=", column("r2"), column("e1")))
    return shown(joined, "r1", "e2")


def guarded() -> Operator:
    """A step whose rows must have something in `other`, or be padded without."""
    joined = Join(scan("reach", "r"), scan("edges", "e"), call("=", column("r2"), column("e1")))
    padded = MatchJoin(joined, scan("other", "x"), "left", call("=", column("e2"), column("x1")))
    return shown(padded, "r1", "e2")


def seen_by_itself() -> Operator:
    """Edges whose end is reached: the loop's relation is only looked for a match in."""
    met = MatchJoin(
        scan("edges", "e"), scan("reach", "r"), "semi", call("=", column("e1"), column("r2"))
    )
    return shown(met, "e1", "e2")


def start() -> Operator:
    first = Filter(scan("edges", "b"), call("=", column("b1"), Literal(0, INTEGER)))
    return shown(first, "b1", "b2")


SETS = {
    "transitive closure": Loop((variable("reach", base(), step("reach")),)),
    "from one node": Loop((variable("reach", start(), step("reach")),)),
    "joined with itself": Loop((variable("reach", base(), step("reach", "reach")),)),
    "two tables": Loop((variable("odd", base(), step("even")), variable("even", step("odd")))),
    "three tables": Loop(
        (
            variable("odd", base(), step("pairs", "blocked")),
            variable("even", step("odd", "other")),
            variable("pairs", step("even"), base("other")),
        )
    ),
    "blocked edges": Loop((variable("reach", base(), unblocked("reach")),)),
    "an outer join with a table outside": Loop((variable("reach", base(), guarded()),)),
    "a match in itself": Loop((variable("reach", start(), seen_by_itself()),)),
}


def levels(*, blocked: bool = False) -> Loop:
    level = Column("level", INTEGER)
    following = unblocked("paths") if blocked else step("paths")
    carried = with_level(following, "paths", level)
    following_level = call("+", level, Literal(1, INTEGER))
    one_more = Project(
        carried, tuple((c, following_level if c == level else c) for c in carried.columns)
    )
    one_more = replace(one_more, outputs=(*one_more.outputs[:-1], (column("n"), following_level)))
    first = start()
    zero = Project(first, (*((c, c) for c in first.columns), (column("n"), Literal(0, INTEGER))))
    return Loop((Variable("paths", UnionAll((zero, one_more)), ("c1", "c2", "l")),), levels=True)


def random_rows(random: Random, nodes: int, rows: int, *, forward: bool = False) -> Bag:
    found: Bag = Counter()
    for _ in range(rows):
        a, b = random.randrange(nodes), random.randrange(nodes)
        if forward and a >= b:
            continue
        end = None if random.random() < 0.05 else b
        found[(a, end)] += 1
    return found


def changed(random: Random, bag: Bag, nodes: int, *, forward: bool = False) -> Bag:
    kept = Counter({row: n for row, n in bag.items() if random.random() < 0.75})
    return kept + random_rows(random, nodes, 2, forward=forward)


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
    met = MatchJoin(scan("reach", "r"), scan("reach", "q"), "semi")
    assert obstacle(met, reach, levels=False, linear=reach) == "a match in itself"
    assert obstacle(met, reach, levels=False) is None
    assert obstacle(unblocked("reach"), reach, levels=False) is None
    hidden = MatchJoin(scan("edges", "e"), scan("reach", "r"), "anti")
    assert obstacle(hidden, reach, levels=False) == "NOT EXISTS"
    assert obstacle(hidden, frozenset({"edges"}), levels=False) is None
