"""First computations over logs from which no row ever went: nothing is netted, nothing differs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from headrace.algebra.scalar import Column
from headrace.delta.differentiate import stage_full
from headrace.delta.nets import drop_nets
from headrace.plan.evaluate import Bag, net
from headrace.plan.operators import Negate, Net, Operator, Scan, Window
from headrace.plan.stages import Stage, cut_stages
from headrace.query import bind
from headrace.types import INTEGER
from tests.delta.raw_logs import Weighted, evaluate_raw, total
from tests.delta.raw_queries import ADDING, CHOOSING, DIVIDING
from tests.delta.raw_refresh import TABLES, Raw, RawLog, Schema, gone_row, next_world, row
from tests.delta.stage_logs import shown
from tests.delta.worlds import World

SEEDS = 12


@dataclass(frozen=True)
class Listed(Raw):
    """Logs in which a row that is there twice may stand twice."""

    def read(self, scan: Scan) -> list[Weighted]:
        rows = super().read(scan)
        return [part for entry, weight in rows for part in _parts(entry, weight)]


def _parts(entry: tuple[object, ...], weight: int) -> list[Weighted]:
    return [(entry, 1), (entry, weight - 1)] if weight > 1 else [(entry, weight)]  # type: ignore[list-item]


def nets(plan: Operator) -> int:
    return isinstance(plan, Net) + sum(map(nets, plan.children))


def computed(stages: tuple[Stage, ...], raw: Raw, adding: frozenset[str]) -> tuple[Bag, int]:
    """What the last stage shows, and how many nets were left out on the way to it."""
    known, spared = set(adding), 0
    for stage in stages:
        plan = stage_full(stage, stored=False)
        less = drop_nets(plan, frozenset(known))
        spared += nets(plan) - nets(less)
        rows = evaluate_raw(less, raw.read)
        assert net(total(rows)) == net(total(evaluate_raw(plan, raw.read)))
        raw.logs[stage.relation] = RawLog(stage, [], rows)
        if all(weight > 0 for _, weight in rows):
            known.add(stage.relation)
    last = raw.logs[stages[-1].relation]
    return shown(stages[-1], total(last.whole)), spared


@pytest.mark.parametrize("query", DIVIDING + CHOOSING + ADDING)
def test_the_result_is_that_of_netted_logs(query: str) -> None:
    bound = bind(query, Schema())
    stages = cut_stages(bound.plan, "x")
    for seed in range(SEEDS):
        random = Random(seed)
        at: dict[str, Bag] = {table: Counter(row(random) for _ in range(5)) for table in TABLES}
        world, expected = next_world(random, at, bound.written)
        adding = frozenset(table for table in TABLES if seed % 3 == 0 or random.random() < 0.5)
        gone = {t: [] if t in adding else [gone_row(random) for _ in range(4)] for t in TABLES}
        raw = Listed(World(world.after, world.after), gone, {})
        found, _ = computed(stages, raw, adding)
        assert found == expected


@pytest.mark.parametrize("query", DIVIDING)
def test_nothing_is_netted_where_nothing_went(query: str) -> None:
    bound = bind(query, Schema())
    random = Random(1)
    at: dict[str, Bag] = {table: Counter(row(random) for _ in range(5)) for table in TABLES}
    world, expected = next_world(random, at, bound.written)
    raw = Listed(World(world.after, world.after), {table: [] for table in TABLES}, {})
    stages = cut_stages(bound.plan, "x")
    found, spared = computed(stages, raw, frozenset(TABLES))
    assert found == expected
    assert spared, "there were some to spare"


def test_rows_that_may_have_gone_are_netted() -> None:
    """What is stored, of another version, taken away or known of another relation alone."""
    scan = Scan("a", (("c1", Column("k", INTEGER)),), "after")
    numbered = Window(Net(scan), (), ())
    assert drop_nets(numbered, frozenset("a")) == numbered, "copies of a row are numbered"
    assert drop_nets(Net(scan), frozenset("a")) == scan
    for plan in (Net(scan), Net(Negate(scan)), Net(Scan("a", (), "before"))):
        adding = frozenset("b") if plan == Net(scan) else frozenset("a")
        assert drop_nets(plan, adding) == plan
