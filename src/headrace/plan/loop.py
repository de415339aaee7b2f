"""Loops: relations that are computed from themselves, in rounds.

A loop over sets is the least fixed point of its bodies: every row that follows from what is outside
is in it once. A loop over levels counts: its rows have the number of the level that they are of, as
their last column, and a level follows from the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.algebra.scalar import Column
from headrace.plan.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    Operator,
    OuterSemiAntiJoin,
    Project,
    Recursive,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Window,
)
from headrace.types import INTEGER

LEVEL = "l"
"""The physical column of the level."""

JOIN_WITH_ITSELF, MATCH_IN_ITSELF = "a join with itself", "a match in itself"
"""Obstacles that are monotone all the same."""


@dataclass(frozen=True)
class Variable:
    """One relation of a loop: `body` gives its rows, `physical` names their columns in order."""

    relation: str
    body: Operator
    physical: tuple[str, ...]

    @property
    def fields(self) -> tuple[tuple[str, Column], ...]:
        return tuple(zip(self.physical, self.body.columns, strict=True))


@dataclass(frozen=True)
class Loop:
    """Variables whose bodies read each other; `levels` has one, over sets there may be several."""

    variables: tuple[Variable, ...]
    levels: bool = False

    @property
    def relations(self) -> frozenset[str]:
        return frozenset(variable.relation for variable in self.variables)


def reads(plan: Operator, relations: frozenset[str]) -> bool:
    """Return whether some scan of the plan is of one of the relations.

    A recursion hides its own variable.
    """
    if isinstance(plan, Scan):
        return plan.relation in relations
    if isinstance(plan, Recursive):
        relations -= {plan.variable}
    return any(reads(child, relations) for child in plan.children)


def obstacle(
    plan: Operator,
    relations: frozenset[str],
    *,
    levels: bool,
    nested: bool = False,
    linear: frozenset[str] = frozenset(),
) -> str | None:
    """Return the name of an operation above a scan of a loop's relations that rounds cannot follow.

    Return None if there is none.

    Over levels the plan has to be additive: what it gives for two sets of rows together is the
    sum of what it gives for each. Over sets it has to be monotone, and a DISTINCT changes nothing.
    With `nested` a recursion above becomes part of the loop. Of a `linear` relation, which is that
    of a recursion, a step reads one level alone: joined with itself it would meet other levels.
    """

    def within(*inside: Operator) -> str | None:
        obstacles = (
            obstacle(child, relations, levels=levels, nested=nested, linear=linear)
            for child in inside
        )
        return next((reason for reason in obstacles if reason is not None), None)

    if not reads(plan, relations):
        # In a UNION: rows that do not come from the level before would come again in every one.
        return "a UNION with rows of other tables" if levels else None
    match plan:
        case Scan():
            return None
        case Filter() | Project() | Unnest():
            pass
        case Join(left=left, right=right):
            sides = [reads(side, relations) for side in (left, right)]
            if all(reads(side, linear) for side in (left, right)):
                return JOIN_WITH_ITSELF
            return within(*(side for side, own in zip((left, right), sides, strict=True) if own))
        case OuterSemiAntiJoin(left=left, right=right, kind=kind):
            if reads(right, relations) and (levels or kind != "semi"):
                return {"left": "an outer join", "semi": "EXISTS", "anti": "NOT EXISTS"}[kind]
            if all(reads(side, linear) for side in (left, right)):
                return MATCH_IN_ITSELF
            return within(*(side for side in (left, right) if reads(side, relations)))
        case UnionAll():
            pass
        case Aggregate(calls=()) if plan.keys:
            if levels:
                return "DISTINCT or GROUP BY"
        case Aggregate():
            return "an aggregate"
        case Window():
            return "a window"
        case Top():
            return "LIMIT or DISTINCT ON"
        case FullJoin():
            return "an outer join"
        case Recursive(variable=variable):
            if not nested:
                return "another recursion"
            relations |= {variable}
            linear |= {variable}
        case _:
            return type(plan).__name__
    return within(*plan.children)


def without_distincts(plan: Operator, relations: frozenset[str]) -> Operator:
    """Return the plan as a set, without the DISTINCTs above scans of these relations."""
    if not reads(plan, relations):
        return plan
    if isinstance(plan, Aggregate):
        outputs = tuple((key, key) for key in plan.keys)
        return Project(without_distincts(plan.child, relations), outputs)
    return plan.with_children(*(without_distincts(c, relations) for c in plan.children))


def as_sets(plan: Operator, relations: frozenset[str]) -> Operator:
    """Return the plan with every recursion that reads a relation of the cycle as a set."""
    plan = plan.with_children(*(as_sets(child, relations) for child in plan.children))
    if isinstance(plan, Recursive) and reads(plan, relations):
        return replace(plan, once=True)
    return plan


def with_level(plan: Operator, relation: str, level: Column) -> Operator:
    """Return an additive plan with one more column: the level of the row that a row comes from."""
    match plan:
        case Scan(fields=fields) if plan.relation == relation:
            return Scan(relation, (*fields, (LEVEL, level)), plan.version)
        case Project(child=child, outputs=outputs) if reads(child, frozenset({relation})):
            return Project(with_level(child, relation, level), (*outputs, (level, level)))
        case _:
            return plan.with_children(*(with_level(c, relation, level) for c in plan.children))


def level_column(plan: Operator) -> Column:
    """Return a column for the level that the plan does not have."""
    return Column("_".join(("level", *(column.id for column in plan.columns[:1]))), INTEGER)
