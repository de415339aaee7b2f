"""Changes that take no row away: which they are, and that their shorter way gives the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column
from headrace.delta.differentiate import Differentiation, only_grows, stage_change
from headrace.delta.fixed_point import Rounds
from headrace.plan.describe import describe
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    STALE,
    Aggregate,
    AggregateCall,
    Join,
    Negate,
    Operator,
    OuterSemiAntiJoin,
    Scan,
    SortKey,
    Top,
)
from headrace.plan.stages import Stage, cut_stages
from headrace.refresh.plan import Decision, taking_in
from headrace.types import INTEGER
from tests.delta import join_plans, partition_plans, random_plans
from tests.delta.loop_examples import PHYSICAL, SETS, random_rows
from tests.delta.loops import PureMachine, least
from tests.delta.reduced import Read, evaluated
from tests.delta.stage_logs import Log, filled, reader
from tests.delta.worlds import RELATIONS, World, bag
from tests.forms import examples

K, X = Column("k", INTEGER), Column("x", INTEGER)
ROWS = Scan("a", (("c1", K), ("c2", X)))
GREATEST = Aggregate(ROWS, (K,), (AggregateCall(Column("greatest", INTEGER), "max", X),))
FIRST = Top(ROWS, (K,), (SortKey(X),), (SortKey(K),), 2)


@st.composite
def growing_worlds(draw: st.DrawFn) -> World:
    """Relations of which some gain rows, and at times one changes in any way."""
    before = {relation: draw(bag) for relation in RELATIONS}
    after = {r: rows + draw(bag) if draw(st.booleans()) else rows for r, rows in before.items()}
    if draw(st.integers(0, 3)) == 0:
        after[draw(st.sampled_from(RELATIONS))] = draw(bag)
    return World(before, after)


def grown(rows: dict[str, Bag]) -> frozenset[str]:
    return frozenset(name for name, change in rows.items() if min(change.values(), default=1) > 0)


def check(plan: Operator, world: World) -> int:
    """Every stage's change in both ways; in how many stages the shorter one was taken."""
    stages = cut_stages(plan, "x")
    logs = filled(stages, World(world.before, world.before))
    logs = {name: Log(log.stage, net(log.added), Counter()) for name, log in logs.items()}
    changes = {name: world.change(name) for name in world.changed}
    taken = 0
    fresh = filled(stages, World(world.after, world.after))
    for stage in stages:
        moved = frozenset(changes)
        read = reader(world, logs)
        if only_grows(stage.region, moved, grown(changes)):
            below = evaluate(Differentiation(moved).change(stage.region), read)
            assert min(net(below).values(), default=1) > 0, "nothing below went"
            if stage.may_be_stale:
                taken += 1
                assert _grown_rows(stage, moved, read) == _any_rows(stage, moved, read)
        log = logs[stage.relation]
        log.added = net(fresh[stage.relation].added)
        log.added.subtract(log.before)
        changes[stage.relation] = log.added = net(log.added)
    return taken


def _grown_rows(stage: Stage, moved: frozenset[str], read: Read) -> Bag:
    plan = stage_change(stage, moved, grows=True)
    assert STALE not in plan.columns
    return net(evaluated(plan, read))


def _any_rows(stage: Stage, moved: frozenset[str], read: Read) -> Bag:
    rows = evaluated(stage_change(stage, moved), read)
    assert not any(row[-1] for row in rows), "no group is stale"
    return net(Counter({row[:-1]: weight for row, weight in rows.items()}))


@settings(max_examples=examples(150), deadline=None)
@given(random_plans.plans(), growing_worlds())
def test_groups(plan: Operator, world: World) -> None:
    check(plan, world)


@settings(max_examples=examples(150), deadline=None)
@given(partition_plans.plans(), growing_worlds())
def test_first_rows(plan: Operator, world: World) -> None:
    check(plan, world)


@settings(max_examples=examples(150), deadline=None)
@given(join_plans.plans(depth=3), growing_worlds())
def test_what_rows_match(plan: Operator, world: World) -> None:
    check(plan, world)


@pytest.mark.parametrize("plan", [GREATEST, FIRST], ids=["greatest", "first rows"])
def test_the_shorter_way_is_taken(plan: Operator) -> None:
    before = {"a": Counter({(1, 1): 1, (1, 5): 2}), "b": Counter(), "c": Counter()}
    more = {**before, "a": before["a"] + Counter({(1, 0): 1, (1, 7): 1, (None, 2): 1})}
    assert check(plan, World(before, more)) == 1
    assert check(plan, World(more, before)) == 0


def test_what_can_lose_rows() -> None:
    other = Scan("b", (("c1", Column("p", INTEGER)), ("c2", Column("q", INTEGER))))
    both, a, b = (frozenset(names) for names in ("ab", "a", "b"))
    for plan, lost_by_b in (
        (Join(ROWS, other), False),
        (OuterSemiAntiJoin(ROWS, other, "semi"), False),
        (OuterSemiAntiJoin(ROWS, other, "left"), True),
        (OuterSemiAntiJoin(ROWS, other, "anti"), True),
    ):
        assert only_grows(plan, a, a) and not only_grows(plan, a, b)
        assert only_grows(plan, b, b) is not lost_by_b
        assert only_grows(plan, both, both) is not lost_by_b
        assert not only_grows(plan, both, a)
    assert only_grows(Negate(ROWS), b, b) and not only_grows(Negate(ROWS), a, a)


@pytest.mark.parametrize("plan", [GREATEST, FIRST], ids=["greatest", "first rows"])
def test_a_step_without_a_second_query(plan: Operator) -> None:
    (stage,) = cut_stages(plan, "x")
    decision = Decision("DIFFERENTIAL", "")
    any_way = taking_in(stage, decision, frozenset("a"))
    grows = taking_in(stage, decision, frozenset("a"), grows=True)
    assert any_way.stale is not None and any_way.touched is not None and not any_way.grows
    assert grows.stale is None and grows.touched is None and grows.grows
    assert grows.inputs == any_way.inputs
    assert STALE.id in any_way.sql and STALE.id not in grows.sql
    assert len(grows.sql) < len(any_way.sql)
    assert grows.reason != any_way.reason and "of rows that came" in describe(grows.plan)


def test_sums_have_no_other_text() -> None:
    """What could not be left stale is the same query either way, so Spark knows its code."""
    (stage,) = cut_stages(replace(GREATEST, calls=()), "x")
    decision = Decision("DIFFERENTIAL", "")
    steps = [taking_in(stage, decision, frozenset("a"), grows=grows) for grows in (False, True)]
    assert steps[0] == steps[1]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(5))
def test_a_loop_looks_for_no_lost_rows(name: str, seed: int) -> None:
    """With the hint and without it the change is the same; with it fewer queries are run."""
    loop, random = SETS[name], Random(f"{name}/{seed}")
    nodes = random.randint(2, 6)
    before = {one: random_rows(random, nodes, nodes) for one in ("edges", "blocked", "other")}
    moved = frozenset(one for one in before if random.random() < 0.7) or frozenset({"edges"})
    after = {
        one: rows + random_rows(random, nodes, 3) if one in moved else rows
        for one, rows in before.items()
    }
    stored = {**before, **least(loop, PHYSICAL, before)}
    machines = [PureMachine(loop, PHYSICAL, stored, after) for _ in range(2)]
    plainly = Rounds(loop, machines[0], 200).changed(moved)
    hinted = Rounds(loop, machines[1], 200).changed(moved, moved)
    assert hinted.changes == plainly.changes
    grows = all(only_grows(one.body, moved, moved) for one in loop.variables)
    fewer = len(machines[0].plans) - len(machines[1].plans)
    reads = sum("change" in describe(plan) for plan in machines[0].plans)
    assert fewer > 0 if grows and reads else fewer == 0
