"""Stages that end in groups, in a window or in the first rows of groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.algebra.scalar import Column, Literal, Scalar, substitute
from headrace.functions import AGGREGATE_BY_NAME, AggregateState, Kept, state_type
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Extremum,
    GroupState,
    Operator,
    Top,
    Window,
)
from headrace.plan.stage import Outputs, Partitions, Stage
from headrace.types import BIGINT


def group_stage(
    name: str, region: Operator, aggregate: Aggregate, outputs: Outputs, condition: Scalar | None
) -> Stage:
    """Return the stage of an aggregate over `region`, with `outputs` where `condition` holds."""
    rows = Column("group_rows", BIGINT)
    sums: dict[Scalar, Column] = {Literal(1, BIGINT): rows}
    extrema: dict[tuple[Kept, Scalar], Extremum] = {}
    calls: list[AggregateCall] = []
    keys = tuple(
        (Column(f"group_key_{i}", key.type), key) for i, key in enumerate(aggregate.keys, 1)
    )
    values: dict[Column, Scalar] = {key: column for column, key in keys}
    for aggregate_call in aggregate.calls:
        function = AGGREGATE_BY_NAME[aggregate_call.function]
        states = _states(aggregate_call)
        if states is None:
            result = Column(f"group_call_{len(calls) + 1}", aggregate_call.output.type)
            calls.append(replace(aggregate_call, output=result))
            values[aggregate_call.output] = result
            continue
        columns: list[Column] = []
        for state in states:
            if state.kept == "sum":
                columns.append(_sum_column(state.term, sums))
            else:
                column = Column(
                    f"group_{state.kept}_{len(extrema) + 1}", aggregate_call.output.type
                )
                new = Extremum(column, state.kept, state.term, present=columns[-1])
                columns.append(extrema.setdefault((state.kept, state.term), new).column)
        values[aggregate_call.output] = function.value(tuple(columns), aggregate_call.output.type)
    stored_sums = tuple((column, term) for term, column in sums.items() if column != rows)
    in_state = _replacing(values)
    return Stage(
        name,
        region,
        tuple((column, substitute(scalar, in_state)) for column, scalar in outputs),
        GroupState(keys, rows, stored_sums, tuple(extrema.values()), tuple(calls)),
        condition=None if condition is None else substitute(condition, in_state),
        additive=not calls and not any(column.type.is_float for column, _ in stored_sums),
    )


def _states(call: AggregateCall) -> tuple[AggregateState, ...] | None:
    """Return the states kept for the call, None if its result needs all rows of the group."""
    if call.distinct or call.only is not None:
        return None
    return AGGREGATE_BY_NAME[call.function].states(call.argument, *call.further)


def _sum_column(term: Scalar, sums: dict[Scalar, Column]) -> Column:
    """Return the column that keeps the sum of the term; equal terms share one."""
    return sums.setdefault(term, Column(f"group_sum_{len(sums)}", state_type(term.type)))


def _replacing(scalars: dict[Column, Scalar]) -> Callable[[Column], Scalar]:
    return lambda column: scalars.get(column, column)


def partition_stage(
    name: str, region: Operator, operator: Window | Top, outputs: Outputs, condition: Scalar | None
) -> Stage:
    """Return the stage of `operator` over `region`, with `outputs` where `condition` holds.

    A top whose first rows are all shown stores them whole, so that changes can be merged with it.
    """
    keys = _stored("partition_key", operator.keys)
    merged = isinstance(operator, Top) and operator.is_merged and condition is None
    rows = _stored("top", region.columns) if merged else ()
    partitions = Partitions(operator, keys, rows)
    return Stage(name, region, outputs, partitions=partitions, condition=condition, additive=merged)


def _stored(name: str, columns: tuple[Column, ...]) -> tuple[tuple[Column, Column], ...]:
    """Return the columns under new ids, as they are stored."""
    return tuple((Column(f"{name}_{i}", c.type), c) for i, c in enumerate(columns, 1))
