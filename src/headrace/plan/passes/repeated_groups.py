"""Groups that occur in several places of a plan, and the conditions that each place has on them.

Groups that are equal up to what their columns are called are kept as one relation, if they stay
equal. So each place keeps its own conditions above the groups; below go those of all places:

    σ[a](γ(R)) … σ[b](γ(R))  =  σ[a](γ(σ[a ∨ b](R))) … σ[b](γ(σ[a ∨ b](R)))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import chain
from headrace.plan.extent import LARGEST, extent
from headrace.plan.operators import Aggregate, Operator, Top, Window
from headrace.plan.rename import numbered, renamed

Conditions = tuple[Scalar, ...]
ConditionsByGroup = dict[Operator, dict[Conditions, None]]
"""For repeated groups, with their columns numbered: the conditions of each place."""


@dataclass
class RepeatedGroups:
    """The repeated groups of a plan during one round of pushing conditions.

    `asked` is what the round before found, `found` what this one does: conditions on groups that
    stand inside of others depend on what is asked of these.
    """

    groups: frozenset[Operator]
    asked: ConditionsByGroup = field(default_factory=dict)
    found: ConditionsByGroup = field(default_factory=dict)

    def next_round(self) -> RepeatedGroups:
        return RepeatedGroups(self.groups, self.found)

    def divide(self, plan: Operator, own: Conditions) -> tuple[Conditions, Conditions]:
        """Return the conditions that go below these groups, and those that stay above them."""
        if not self.groups:
            return own, ()
        alike, columns = numbered(plan)
        if alike not in self.groups:
            return own, ()
        numbers = {column: Column(f"x{i}", column.type) for i, column in enumerate(columns)}
        mine = tuple(renamed(condition, numbers) for condition in own)
        never = any(map(is_never, own))
        if not never:
            self.found.setdefault(alike, {})[mine] = None
        places = self.asked.get(alike, {})
        if not never and mine not in places:
            return (), own
        if not never and len(places) == 1:
            return own, ()
        below = alternatives(tuple(places))
        if below is None:
            # Groups of rows that no place asks for might raise: each place has groups of its own.
            return own, ()
        names = {number: column for column, number in numbers.items()}
        return tuple(renamed(condition, names) for condition in below), own


def repeated_groups(plan: Operator) -> RepeatedGroups:
    """Return the groups and partitions that occur several times in the plan."""
    stateful = list(_stateful(plan))
    if len(stateful) < 2:
        return RepeatedGroups(frozenset())
    times = Counter(numbered(node)[0] for node in stateful)
    return RepeatedGroups(frozenset(node for node, count in times.items() if count > 1))


def is_never(condition: Scalar) -> bool:
    """Return whether the condition is a constant that no row passes."""
    return isinstance(condition, Literal) and condition.value is not True


def _stateful(plan: Operator) -> Iterator[Operator]:
    if isinstance(plan, (Aggregate, Window, Top)) and plan.keys:
        yield plan
    for child in plan.children:
        yield from _stateful(child)


def alternatives(places: tuple[Conditions, ...]) -> Conditions | None:
    """Return conditions that hold for just the rows that some place asks for; None if too long.

    The common conditions alone would let in rows that no place asks for.
    """
    places = tuple(dict.fromkeys(places))
    if not places or not all(places):
        return ()
    common = tuple(c for c in dict.fromkeys(places[0]) if all(c in place for place in places))
    rest = [tuple(c for c in place if c not in common) for place in places]
    if not all(rest):
        return common
    either = chain("or", [chain("and", conditions) for conditions in rest])
    return None if extent(either).nodes > LARGEST else (*common, either)
