"""Loops as stages: recursions of a query, and the tables of a cycle.

A recursion's stage reads its own relation where the recursion's step reads the level before. Both
inputs become one body, over levels with the number of the level as its last column:

    body = base at level 0  +  step over the relation, one level further
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import call
from headrace.plan.loop import (
    Variable,
    level_column,
    obstacle,
    with_level,
    without_distincts,
)
from headrace.plan.operators import (
    Aggregate,
    FullJoin,
    Operator,
    OuterSemiAntiJoin,
    PlanError,
    Project,
    Recursive,
    Replicate,
    Scan,
    Top,
    UnionAll,
    Window,
)
from headrace.plan.passes.merge_projects import merge_projects
from headrace.plan.stage import Outputs, Stage
from headrace.types import INTEGER

Inner = Callable[[Operator], Operator]
"""Cuts what stands below a stage: stateful operators become relations of their own."""


def recursion_below(node: Operator) -> tuple[Recursive, Outputs] | None:
    """Return a recursion, or one whose columns are only renamed or reordered, with its outputs."""
    match node:
        case Recursive():
            return node, tuple((column, column) for column in node.columns)
        case Project(child=child, outputs=outputs):
            inner_result = recursion_below(child)
            if inner_result is None:
                return None
            recursion, below = inner_result
            inside = dict(below)
            output_columns = [inside[scalar] for _, scalar in outputs if isinstance(scalar, Column)]
            if len(output_columns) < len(outputs) or {*output_columns} != {*recursion.columns}:
                return None
            if len(output_columns) > len(recursion.columns):
                return None
            return recursion, tuple(
                (column, column_below)
                for (column, _), column_below in zip(outputs, output_columns, strict=True)
            )
        case _:
            return None


def loop_stage(name: str, recursion: Recursive, outputs: Outputs, inner: Inner) -> Stage:
    """Return the stage of a recursion, which writes the relation `name`.

    `inner` keeps operators that read this relation whole.
    """
    places = {column: f"c{number}" for number, (_, column) in enumerate(outputs, 1)}
    physical = tuple(places[column] for column in recursion.outputs)
    own, levels = frozenset({name}), not recursion.once
    step = over(recursion.step, recursion.variable, name, physical)
    reason = obstacle(step, own, levels=levels, linear=own)
    if reason is not None:
        whole = replace(recursion, variable=name, step=step)
        return Stage(name, whole, outputs, recursion=whole, obstacle=reason)
    if levels:
        level = level_column(recursion)
        base = _as(inner(recursion.base), recursion.outputs, (level, Literal(0, INTEGER)))
        before = replace(level, id=f"{level.id}_before")
        further = call("+", before, Literal(1, INTEGER))
        carried = with_level(inner(step), name, before)
        # The step's own columns are matched by position; the level stands anywhere among them.
        rows = tuple(column for column in carried.columns if column != before)
        step_outputs = tuple(zip(recursion.outputs, rows, strict=True))
        body = merge_projects(UnionAll((base, Project(carried, (*step_outputs, (level, further))))))
        variable = Variable(name, body, (*physical, "l"))
    else:
        steps = inner(without_distincts(step, own))
        both = (_as(part, recursion.outputs) for part in (inner(recursion.base), steps))
        body = merge_projects(UnionAll(tuple(both)))
        variable = Variable(name, body, physical)
    stratified = any(map(_takes_away, recursion.children))
    return Stage(name, body, outputs, variable=variable, levels=levels, stratified=stratified)


def cycle_stage(name: str, plan: Operator, cycle: frozenset[str], inner: Inner) -> Stage:
    """Return the last stage of a stream table in a cycle: the rows that it shows, as a set."""
    reason = obstacle(plan, cycle, levels=False, nested=True)
    if reason is not None:
        raise PlanError(f"a cycle through {reason}")
    body = inner(without_distincts(plan, cycle))
    outputs = tuple((column, column) for column in body.columns)
    physical = tuple(f"c{number}" for number in range(1, len(outputs) + 1))
    variable = Variable(name, body, physical)
    return Stage(name, body, outputs, variable=variable, cycle=True)


def nested_stage(name: str, recursion: Recursive, cycle: frozenset[str], inner: Inner) -> Stage:
    """Return the stage of a recursion that reads a cycle: another relation of the cycle's loop."""
    physical = tuple(f"c{number}" for number in range(1, len(recursion.outputs) + 1))
    step = over(recursion.step, recursion.variable, name, physical)
    parts = (without_distincts(part, cycle | {name}) for part in (recursion.base, step))
    body = merge_projects(UnionAll(tuple(_as(inner(part), recursion.outputs) for part in parts)))
    outputs = tuple((column, column) for column in recursion.outputs)
    return Stage(name, body, outputs, variable=Variable(name, body, physical), cycle=True)


def _takes_away(plan: Operator) -> bool:
    """Return whether more rows below some operator can mean fewer above it."""
    match plan:
        case OuterSemiAntiJoin(kind="left" | "anti") | FullJoin() | Window() | Top() | Replicate():
            return True
        case Aggregate(calls=calls) if calls or not plan.keys:
            return True
        case _:
            return any(map(_takes_away, plan.children))


def over(plan: Operator, variable: str, name: str, physical: tuple[str, ...]) -> Operator:
    """Return the step reading the stage's relation, whose columns are named `physical`."""
    places = {f"c{number}": place for number, place in enumerate(physical, 1)}
    return _over(plan, variable, name, places)


def _over(plan: Operator, variable: str, name: str, places: Mapping[str, str]) -> Operator:
    if isinstance(plan, Scan):
        if plan.relation != variable:
            return plan
        fields = tuple((places[physical], column) for physical, column in plan.fields)
        return replace(plan, relation=name, fields=fields)
    return plan.with_children(*(_over(c, variable, name, places) for c in plan.children))


def _as(plan: Operator, columns: tuple[Column, ...], *added: tuple[Column, Scalar]) -> Project:
    return Project(plan, (*zip(columns, plan.columns, strict=True), *added))
