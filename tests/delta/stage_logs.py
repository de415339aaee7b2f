"""Logs of stages that follow a change, compared with logs filled from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from headrace.algebra.scalar import Value
from headrace.delta.differentiate import stage_change, stage_full, stale_change
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    Operator,
    Scan,
)
from headrace.plan.stages import Stage, cut_stages
from tests.delta.reduced import evaluated
from tests.delta.worlds import World


def shown(stage: Stage, stored: Bag) -> Bag:
    """What a reader sees of stored rows: the visible columns of the rows that are shown."""
    names = [physical for physical, _ in stage.stored]
    visible = [names.index(physical) for physical, _ in stage.visible]
    result: Bag = Counter()
    for values, weight in stored.items():
        if stage.condition_column is None or values[names.index("v")]:
            result[tuple(values[i] for i in visible)] += weight
    return net(result)


@dataclass
class Log:
    """The stages' logs while one refresh runs: before it, and what it adds."""

    stage: Stage
    before: Bag
    added: Bag

    def version(self, scan: Scan) -> Bag:
        rows = Counter(self.before) if scan.version != "change" else Counter()
        if scan.version != "before":
            rows.update(self.added)
        names = [physical for physical, _ in self.stage.stored]
        positions = [names.index(physical) for physical, _ in scan.fields]
        result: Bag = Counter()
        for values, weight in rows.items():
            result[tuple(values[i] for i in positions)] += weight
        return net(result) if scan.version == "change" else result


Stale = frozenset[tuple[Value, ...]]


def reader(
    world: World, logs: Mapping[str, Log], stale: Stale = frozenset()
) -> Callable[[Scan], Bag]:
    def read(scan: Scan) -> Bag:
        if scan.version == "stale":
            return Counter(stale)
        if scan.relation in logs:
            return logs[scan.relation].version(scan)
        match scan.version:
            case "change":
                rows = world.change(scan.relation)
            case "before":
                rows = world.before[scan.relation]
            case _:
                rows = world.after[scan.relation]
        places = [int(physical.removeprefix("c")) - 1 for physical, _ in scan.fields]
        result: Bag = Counter()
        for values, weight in rows.items():
            result[tuple(values[i] for i in places)] += weight
        return net(result)

    return read


def filled(stages: tuple[Stage, ...], world: World) -> dict[str, Log]:
    """Return the log of every stage, evaluated from scratch."""
    logs: dict[str, Log] = {}
    for stage in stages:
        rows = evaluate(stage_full(stage, stored=False), reader(world, logs))
        logs[stage.relation] = Log(stage, Counter(), net(rows))
    return logs


def refreshed(
    stages: tuple[Stage, ...], world: World, logs: dict[str, Log]
) -> tuple[dict[str, Log], int]:
    """Every stage brought along by its change, and the number of groups that were stale on the way.

    What was added before becomes the state before.
    """
    logs = {name: Log(log.stage, whole(log), Counter()) for name, log in logs.items()}
    moved = set(world.changed)
    found = 0
    for stage in stages:
        change = evaluated(stage_change(stage, frozenset(moved)), reader(world, logs))
        if stage.may_be_stale:
            width = len(stage.keys)
            stale = frozenset(row[:width] for row in change if row[-1])
            change = Counter({row[:-1]: w for row, w in change.items() if not row[-1]})
            if stale:
                found += len(stale)
                again = stale_change(stage, frozenset(moved))
                change.update(evaluated(again, reader(world, logs, stale)))
        logs[stage.relation].added = net(change)
        moved.add(stage.relation)
    return logs, found


def whole(log: Log) -> Bag:
    rows = Counter(log.before)
    rows.update(log.added)
    return net(rows)


def check(plan: Operator, world: World, *, additive: bool = True) -> int:
    """The path of changes against the plan's definition; the number of stale groups on the way."""
    stages = cut_stages(plan, "x")
    assert len({stage.relation for stage in stages}) == len(stages)
    if not additive:
        stages = tuple(replace(stage, additive=False) for stage in stages)
    start, end = World(world.before, world.before), World(world.after, world.after)
    logs = filled(stages, start)
    last = stages[-1]
    assert shown(last, whole(logs["x"])) == net(evaluate(plan, reader(start, {})))

    logs, stale = refreshed(stages, world, logs)
    expected = net(evaluate(plan, reader(end, {})))
    assert shown(last, whole(logs["x"])) == expected
    fresh = filled(stages, end)
    for name, log in logs.items():
        assert whole(log) == whole(fresh[name]), "the hidden state is the same on both paths"

    before = {name: Log(log.stage, log.before, Counter()) for name, log in logs.items()}
    for stage in stages:
        again = evaluate(stage_full(stage, stored=True), reader(end, before))
        before[stage.relation].added = net(again)
        assert whole(before[stage.relation]) == whole(fresh[stage.relation])
    return stale


def check_steps(plan: Operator, steps: list[World]) -> None:
    """Several changes after each other end in the same state as a fresh evaluation."""
    stages = cut_stages(plan, "x")
    logs = filled(stages, World(steps[0].before, steps[0].before))
    at = steps[0].before
    for step in steps:
        logs, _ = refreshed(stages, World(at, step.after), logs)
        at = step.after
    fresh = filled(stages, World(at, at))
    assert {name: whole(log) for name, log in logs.items()} == {
        name: whole(log) for name, log in fresh.items()
    }
