"""Random plans over three relations: joins, filters, unions and aggregates."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hypothesis import strategies as st

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import AGGREGATE_BY_NAME, call, chain
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
from headrace.types import INTEGER, Type
from tests.delta.worlds import RELATIONS

FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev", "var_pop", "bit_xor", "mode")


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
