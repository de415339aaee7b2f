"""Every delta rule against its definition, query(after) − query(before), on random bags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal, Scalar, Value
from headrace.delta.differentiate import stage_change, stage_full, stale_change
from headrace.functions import AGGREGATE_BY_NAME, call, chain
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    SortKey,
    UnionAll,
)
from headrace.plan.passes import improve, push_filters
from headrace.plan.stages import Stage, cut_stages
from headrace.types import DOUBLE, INTEGER, Type
from tests.delta.reduced import evaluated
from tests.forms import examples

RELATIONS = ("a", "b", "c")
FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev", "var_pop", "bit_xor", "mode")
value = st.one_of(st.none(), st.integers(-2, 2))
row = st.tuples(value, value)
bag = st.lists(row, max_size=6).map(Counter)


@dataclass(frozen=True)
class World:
    """Each relation before and after; the change is the difference."""

    before: dict[str, Bag]
    after: dict[str, Bag]

    @property
    def changed(self) -> frozenset[str]:
        return frozenset(r for r in self.before if net(self.change(r)))

    def change(self, relation: str) -> Bag:
        change = Counter(self.after[relation])
        change.subtract(self.before[relation])
        return net(change)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    before = {relation: draw(bag) for relation in RELATIONS}
    after = {r: draw(bag) if draw(st.booleans()) else before[r] for r in RELATIONS}
    return World(before, after)


class Names:
    """Column ids of one plan."""

    def __init__(self) -> None:
        self.count = 0

    def column(self, type_: Type = INTEGER) -> Column:
        self.count += 1
        return Column(f"x{self.count}", type_)


def conditions(columns: tuple[Column, ...]) -> st.SearchStrategy[Scalar]:
    """A comparison, or alternatives of several at once."""
    branch = st.lists(comparisons(columns), min_size=1, max_size=3).map(partial(chain, "and"))
    several = st.lists(branch, min_size=2, max_size=3).map(partial(chain, "or"))
    return comparisons(columns) | several


@st.composite
def comparisons(draw: st.DrawFn, columns: tuple[Column, ...]) -> Scalar:
    left = draw(st.sampled_from(columns))
    right = draw(st.sampled_from([*columns, Literal(0, INTEGER), Literal(None, INTEGER)]))
    test = call(draw(st.sampled_from(["=", "<", "<>", "is not distinct from"])), left, right)
    return draw(st.sampled_from([test, call("not", test)]))


@st.composite
def regions(draw: st.DrawFn, names: Names, depth: int = 3) -> Operator:
    kinds = ["scan"] if depth == 0 else ["scan", "filter", "project", "join", "union"]
    match draw(st.sampled_from(kinds)):
        case "scan":
            relation = draw(st.sampled_from(RELATIONS))
            return Scan(relation, (("c1", names.column()), ("c2", names.column())))
        case "filter":
            child = draw(regions(names, depth - 1))
            return Filter(child, draw(conditions(child.columns)))
        case "project":
            child = draw(regions(names, depth - 1))
            return _project(draw, names, child, 2)
        case "join":
            left, right = draw(regions(names, depth - 1)), draw(regions(names, depth - 1))
            both = left.columns + right.columns
            return Join(left, right, draw(st.none() | conditions(both)))
        case _:
            left, right = draw(regions(names, depth - 1)), draw(regions(names, depth - 1))
            first = _project(draw, names, left, 2)
            second = _project(draw, names, right, 2)
            columns = first.columns
            renamed = tuple(
                (c, scalar) for c, (_, scalar) in zip(columns, second.outputs, strict=True)
            )
            return UnionAll((first, replace(second, outputs=renamed)))


def _project(draw: st.DrawFn, names: Names, child: Operator, width: int) -> Project:
    scalars = [
        draw(
            st.sampled_from(
                [
                    draw(st.sampled_from(child.columns)),
                    call("+", draw(st.sampled_from(child.columns)), Literal(1, INTEGER)),
                ]
            )
        )
        for _ in range(width)
    ]
    return Project(child, tuple((names.column(), scalar) for scalar in scalars))


@st.composite
def plans(draw: st.DrawFn) -> Operator:
    """A region, often with aggregates above it."""
    names = Names()
    plan = draw(regions(names))
    for _ in range(draw(st.integers(0, 3))):
        plan = draw(aggregates(names, plan))
    return plan


@st.composite
def aggregates(draw: st.DrawFn, names: Names, child: Operator) -> Operator:
    """DISTINCT, or GROUP BY with calls and sometimes HAVING; integers alone come out of it."""
    integers = tuple(column for column in child.columns if column.type == INTEGER)
    if not integers:
        return child
    keys = tuple(draw(st.lists(st.sampled_from(integers), unique=True, max_size=2)))
    if keys and draw(st.booleans()):
        return Aggregate(child, keys, ())
    calls = [AggregateCall(names.column(AGGREGATE_BY_NAME["count"].type_of(None)), "count")]
    for function in draw(st.lists(st.sampled_from(FUNCTIONS), max_size=3)):
        argument = draw(st.sampled_from(integers))
        type_ = AGGREGATE_BY_NAME[function].type_of(argument.type)
        order = (SortKey(argument),) if function == "mode" else ()
        distinct = function not in ("min", "max", "mode") and draw(st.booleans())
        output = names.column(type_)
        calls.append(AggregateCall(output, function, argument, distinct=distinct, order=order))
    aggregate: Operator = Aggregate(child, keys, tuple(calls))
    if draw(st.booleans()):
        tested = draw(st.sampled_from(calls)).output
        aggregate = Filter(aggregate, call(">", tested, Literal(1, INTEGER)))
    return aggregate


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
    """Every stage evaluated anew."""
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


@settings(max_examples=examples(500), deadline=None)
@given(plans(), worlds())
def test_a_stage_s_change_is_the_difference_of_its_states(plan: Operator, world: World) -> None:
    check(plan, world)


@settings(max_examples=examples(150), deadline=None)
@given(plans(), worlds())
def test_recomputing_touched_groups_gives_the_same(plan: Operator, world: World) -> None:
    check(plan, world, additive=False)


@settings(max_examples=examples(100), deadline=None)
@given(plans(), st.lists(worlds(), min_size=2, max_size=4))
def test_small_steps_are_one_big_step(plan: Operator, steps: list[World]) -> None:
    check_steps(plan, steps)


@settings(max_examples=examples(200), deadline=None)
@given(plans(), worlds())
def test_the_passes_keep_the_rows(plan: Operator, world: World) -> None:
    read = reader(World(world.after, world.after), {})
    better = improve(plan)
    assert better.columns == plan.columns
    assert net(evaluate(better, read)) == net(evaluate(plan, read))
    check(better, world)


K, X = Column("k", INTEGER), Column("x", INTEGER)
ROWS = Scan("a", (("c1", K), ("c2", X)))
BESTS = (
    AggregateCall(Column("least", INTEGER), "min", X),
    AggregateCall(Column("greatest", INTEGER), "max", X),
)


@pytest.mark.parametrize(
    ("before", "after", "stale"),
    [
        ([(1, 3), (1, 5)], [(1, 3), (1, 5), (1, 7), (2, 1)], 0),
        ([(1, 3), (1, 4), (1, 5)], [(1, 3), (1, 5)], 0),
        ([(1, 3), (1, 5)], [(1, 5)], 1),
        ([(1, 3), (1, 5), (2, 3), (2, 5)], [(1, 5), (2, 5)], 2),
        ([(1, 3), (1, 5)], [(1, 2), (1, 5)], 0),
        ([(1, 3), (1, 5)], [(1, 4), (1, 5)], 1),
        ([(1, 3), (1, 3), (1, 5)], [(1, 3), (1, 5)], 1),
        ([(1, 3), (1, 5)], [], 0),
        ([(1, 3), (1, None)], [(1, None)], 0),
        ([(1, None)], [(1, 3), (1, None)], 0),
        ([(1, 3), (None, 4)], [(None, 4), (None, 9)], 0),
        ([(1, 3), (1, 5)], [(2, 3), (1, 5)], 1),
    ],
    ids=[
        "inserts",
        "a value between them goes",
        "the least goes",
        "in two groups",
        "a better one comes",
        "a worse one comes",
        "one of two equal ones goes",
        "the whole group goes",
        "only NULL is left",
        "the first value comes",
        "a NULL key",
        "a row changes its group",
    ],
)
@pytest.mark.parametrize("keys", [(K,), ()], ids=["grouped", "global"])
def test_extrema(
    keys: tuple[Column, ...],
    before: list[tuple[Value, Value]],
    after: list[tuple[Value, Value]],
    stale: int,
) -> None:
    nothing: Bag = Counter()
    world = World(
        {"a": Counter(before), "b": nothing, "c": nothing},
        {"a": Counter(after), "b": nothing, "c": nothing},
    )
    found = check(Aggregate(ROWS, keys, BESTS), world)
    assert found == stale if keys else found <= 1


def test_float_sums_are_not_added_up() -> None:
    x = Column("x", DOUBLE)
    scan = Scan("a", (("c1", x),))
    plan = Aggregate(scan, (), (AggregateCall(Column("s", DOUBLE), "sum", x),))
    (stage,) = cut_stages(plan, "x")
    assert not stage.additive


def test_a_condition_that_can_raise_sees_no_pair_that_never_was() -> None:
    """The old left row is gone when the new right row comes: together they would divide by zero."""
    a, b, key_a, key_b = (Column(name, INTEGER) for name in ("a", "b", "ka", "kb"))
    left = Scan("a", (("c1", key_a), ("c2", a)))
    right = Scan("b", (("c1", key_b), ("c2", b)))
    ratio = call(">", call("/", a, b), Literal(0, INTEGER))
    plan = push_filters(Join(left, right, call("and", call("=", key_a, key_b), ratio)))
    world = World(
        before={"a": Counter({(1, 6): 1}), "b": Counter({(1, 3): 1}), "c": Counter()},
        after={"a": Counter({(2, 8): 1}), "b": Counter({(1, 0): 1, (2, 4): 1}), "c": Counter()},
    )
    check(plan, world)
