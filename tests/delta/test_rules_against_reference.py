"""Every delta rule against its definition, query(after) − query(before), on random bags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.delta.differentiate import stage_change, stage_full
from headrace.functions import AGGREGATE_BY_NAME, call
from headrace.plan.evaluate import Bag, evaluate, net
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    UnionAll,
)
from headrace.plan.passes import push_filters
from headrace.plan.scalar import Column, Literal, Scalar
from headrace.plan.stages import Stage, cut_stages
from headrace.types import DOUBLE, INTEGER, Type

RELATIONS = ("a", "b", "c")
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
        return frozenset(r for r in RELATIONS if net(self.change(r)))

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


@st.composite
def conditions(draw: st.DrawFn, columns: tuple[Column, ...]) -> Scalar:
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
def plans(draw: st.DrawFn, exact: bool = True) -> Operator:
    names = Names()
    child = draw(regions(names))
    if draw(st.booleans()):
        return child
    keys = tuple(draw(st.lists(st.sampled_from(child.columns), unique=True, max_size=2)))
    argument = draw(st.sampled_from(child.columns))
    calls = [AggregateCall(names.column(AGGREGATE_BY_NAME["count"].type_of(None)), "count")]
    for function in draw(st.lists(st.sampled_from(["count", "sum", "avg"]), max_size=2)):
        type_ = AGGREGATE_BY_NAME[function].type_of(argument.type)
        calls.append(AggregateCall(names.column(type_), function, argument))
    aggregate: Operator = Aggregate(child, keys, tuple(calls))
    if draw(st.booleans()):
        count = calls[0].output
        aggregate = Filter(aggregate, call(">", count, Literal(1, INTEGER)))
    return aggregate


def shown(stage: Stage, stored: Bag) -> Bag:
    """What a reader sees of stored rows: the visible columns of the rows that are shown."""
    names = [physical for physical, _ in stage.stored]
    visible = [names.index(physical) for physical, _ in stage.visible]
    result: Bag = Counter()
    for values, weight in stored.items():
        if stage.condition is None or values[names.index("v")]:
            result[tuple(values[i] for i in visible)] += weight
    return net(result)


def reader(world: World, stored: Bag, stage: Stage) -> Callable[[Scan], Bag]:
    def read(scan: Scan) -> Bag:
        if scan.relation == stage.relation:
            names = [physical for physical, _ in stage.stored]
            positions = [names.index(physical) for physical, _ in scan.fields]
            result: Bag = Counter()
            for values, weight in stored.items():
                result[tuple(values[i] for i in positions)] += weight
            return result
        match scan.version:
            case "change":
                return world.change(scan.relation)
            case "before":
                return world.before[scan.relation]
            case "after":
                return world.after[scan.relation]

    return read


def check(plan: Operator, world: World) -> None:
    (stage,) = cut_stages(plan, "x")
    start = World(world.before, world.before)
    stored = net(evaluate(stage_full(stage, stored=False), reader(start, Counter(), stage)))
    assert shown(stage, stored) == net(evaluate(plan, reader(start, Counter(), stage)))

    change = evaluate(stage_change(stage, world.changed), reader(world, stored, stage))
    stored_after = Counter(stored)
    stored_after.update(change)
    end = World(world.after, world.after)
    expected = net(evaluate(plan, reader(end, Counter(), stage)))
    assert shown(stage, net(stored_after)) == expected
    fresh = net(evaluate(stage_full(stage, stored=False), reader(end, Counter(), stage)))
    assert net(stored_after) == fresh, "the hidden state is the same on both paths"

    replaced = Counter(stored)
    replaced.update(evaluate(stage_full(stage, stored=True), reader(world, stored, stage)))
    assert net(replaced) == fresh


@settings(max_examples=400, deadline=None)
@given(plans(), worlds())
def test_a_stage_s_change_is_the_difference_of_its_states(plan: Operator, world: World) -> None:
    check(plan, world)


@settings(max_examples=150, deadline=None)
@given(plans(), worlds())
def test_recomputing_touched_groups_gives_the_same(plan: Operator, world: World) -> None:
    (stage,) = cut_stages(plan, "x")
    recomputing = replace(stage, additive=False)
    start = World(world.before, world.before)
    stored = net(evaluate(stage_full(recomputing, stored=False), reader(start, Counter(), stage)))
    change = evaluate(stage_change(recomputing, world.changed), reader(world, stored, stage))
    stored.update(change)
    end = World(world.after, world.after)
    fresh = net(evaluate(stage_full(stage, stored=False), reader(end, Counter(), stage)))
    assert net(stored) == fresh


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
