"""Random networks, random changes, random refreshes: at every moment each group is one world."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from random import Random

import psycopg
import pytest

import headrace
from headrace.engine import nobody_watches
from headrace.engine.steps import Step
from headrace.ingest.ingest import ingest
from headrace.refresh.refresh import refresh_group
from headrace.relations.compaction import compact
from tests.e2e.worlds import World, random_change, random_queries

pytestmark = pytest.mark.e2e

STEPS = int(os.environ.get("HEADRACE_STEPS", "14"))
SEEDS = int(os.environ.get("HEADRACE_SEEDS", "2"))
FIRST = int(os.environ.get("HEADRACE_FIRST", "0"))


class Crash(BaseException):
    """Nobody cleans up after it."""


class Fate:
    """Lets a process die around one of the next steps."""

    def __init__(self, moments: int) -> None:
        self.moments = moments

    def __call__(self, when: str, step: Step) -> None:
        self.moments -= 1
        if self.moments == 0:
            raise Crash


def take_cut(hr: headrace.Headrace) -> None:
    engine = hr._engine
    with engine.writing() as lease:
        ingest(engine, engine.catalog.state(), lease.fence)


def refresh_unit(hr: headrace.Headrace, relations: tuple[str, ...]) -> None:
    engine = hr._engine
    with engine.writing() as lease:
        refresh_group(engine, engine.catalog.state(), relations, lease.fence)


def refresh_side_by_side(world: World, random: Random) -> None:
    """Some units in threads, as in a daemon, while cuts are taken and old epochs compacted."""
    engine = world.hr._engine
    with engine.serving(10.0) as lease, ThreadPoolExecutor(3) as pool:
        state = engine.catalog.state()
        reads = {table.relation: set(table.inputs) for table in state.stream_tables}
        # What is begun reads nothing that is being refreshed, but may be read by that.
        chosen: list[tuple[str, ...]] = []
        for unit in random.sample(world.units, len(world.units))[:3]:
            read = {one for name in unit for one in reads[name]}
            if read.isdisjoint(one for other in chosen for one in other):
                chosen.append(unit)
        running = []
        for unit in chosen:
            engine.hold(state)
            running.append(pool.submit(refresh_group, engine, state, unit, lease.fence))
        for _ in range(random.randint(0, 6)):
            world.sql.execute(random_change(random))
            after = ingest(engine, engine.catalog.state(), lease.fence)
            world.remember()
            compact(engine, [source.relation for source in after.sources], lease.fence)
        for future in running:
            future.result()
            engine.release(state)


def die(world: World, random: Random) -> None:
    """A refresh that ends around one of its steps, if it has so many."""
    world.hr._engine.watch = Fate(random.randint(1, 24))
    try:
        if random.random() < 0.5:
            world.hr.refresh(random.choice(list(world.queries)))
        else:
            refresh_unit(world.hr, random.choice(world.units))
    except Crash:
        pass
    finally:
        world.hr._engine.watch = nobody_watches


def act(world: World, random: Random) -> None:
    """One thing that happens to a project."""
    kinds = {"change": 30, "cut": 10, "unit": 30, "table": 10, "threads": 12, "death": 8}
    match random.choices(list(kinds), list(kinds.values()))[0]:
        case "change":
            for _ in range(random.randint(1, 4)):
                world.sql.execute(random_change(random))
            return
        case "cut":
            take_cut(world.hr)
        case "unit":
            refresh_unit(world.hr, random.choice(world.units))
        case "table":
            world.hr.refresh(random.choice(list(world.queries)))
        case "threads":
            refresh_side_by_side(world, random)
        case _:
            die(world, random)
    world.remember()


def assert_verified(world: World) -> None:
    """Spark's recompute at the recorded epochs, from the ends down to the sources."""
    read = {name for table in world.state.stream_tables for name in table.inputs}
    for table in world.state.stream_tables:
        if table.relation not in read:
            receipt = world.hr.verify(table.name)
            assert receipt.equal, receipt.detail


def assert_up_to_date(world: World) -> None:
    """Refreshed by hand, every table shows the sources as they are now."""
    for name in world.queries:
        world.hr.refresh(name)
        world.remember()
    world.assert_one_world()
    assert_verified(world)
    newest = {(one, len(states) - 1) for one, states in world.states.items()}
    for source in world.state.sources:
        assert world.states[source.relation][-1][1] == world.rows(source.name)
    for table in world.state.stream_tables:
        assert any(combination <= newest for combination in world.shown(table.relation))


@pytest.mark.parametrize("seed", [FIRST + seed for seed in range(SEEDS)])
def test_groups_are_one_world_at_every_moment(
    project: headrace.Headrace, sql: psycopg.Connection, seed: int
) -> None:
    random = Random(seed)
    world = World(project, sql, random_queries(random, random.randint(3, 7)))
    world.create(random)
    world.assert_one_world()
    for number in range(STEPS):
        act(world, random)
        world.assert_one_world()
        if number == STEPS // 2:
            assert_verified(world)
    assert_up_to_date(world)


@pytest.mark.parametrize("seed", [FIRST + seed for seed in range((SEEDS + 2) // 3)])
def test_without_consistency_every_table_is_what_its_frontier_says(
    project: headrace.Headrace, sql: psycopg.Connection, seed: int
) -> None:
    random = Random(seed)
    world = World(project, sql, random_queries(random, random.randint(3, 7)))
    world.create(random, diamond_consistency="none")
    assert {len(unit) for unit in world.units} == {1}
    for number in range(STEPS):
        act(world, random)
        if number % 6 == 5:
            assert_verified(world)
    assert_up_to_date(world)


def test_a_split_world_is_noticed(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    """One way is refreshed, the other is not, and both meet: what groups keep from happening."""
    queries = {
        "t1": "SELECT k, sum(v)::bigint AS v FROM s1 GROUP BY k",
        "t2": "SELECT k, (v + 1) AS v FROM s1",
        "t3": "SELECT a.k, (a.v + b.v) AS v FROM t1 a JOIN t2 b ON a.k = b.k",
    }
    world = World(project, sql, queries)
    world.create(Random(0), diamond_consistency="none")
    world.assert_one_world()
    first, second, third = world.units
    sql.execute("UPDATE s1 SET v = v + 1")
    take_cut(project)
    world.remember()
    world.assert_one_world()
    for unit in (first, third):
        refresh_unit(project, unit)
        world.remember()
    with pytest.raises(AssertionError, match="t3 shows a source in two states"):
        world.assert_one_world()
    for unit in (second, third):
        refresh_unit(project, unit)
        world.remember()
    world.assert_one_world()
