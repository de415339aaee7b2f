"""Whether a change can only add rows: then nothing has to be looked for that could have gone.

A plan that is monotone in all that changed gains rows, and loses none, when they gain rows:

| operator | gains alone, if |
|---|---|
| Filter, Project, Unnest, Replicate, UnionAll, Join, semi join | all inputs do |
| left and anti join | the preserved side does, and the other did not change |
| any other | nothing below it changed |

This is about the net change: logs that are read raw have rows that were added and removed again.
"""

from __future__ import annotations

from headrace.delta.differentiate import relations_of
from headrace.plan.operators import (
    Filter,
    Join,
    MatchJoin,
    Operator,
    Project,
    Replicate,
    Scan,
    UnionAll,
    Unnest,
)


def only_grows(plan: Operator, changed: frozenset[str], grown: frozenset[str]) -> bool:
    """Whether no row of the plan can go; of the relations that `changed`, those `grown` lost none.

    Relations that the plan reads and that did not change do not matter.
    """
    if not relations_of(plan) & changed:
        return True
    match plan:
        case Scan(relation=relation):
            return relation in grown
        case MatchJoin(left=left, right=right, kind="left" | "anti"):
            return only_grows(left, changed, grown) and not relations_of(right) & changed
        case Filter() | Project() | Unnest() | Replicate() | UnionAll() | Join() | MatchJoin():
            return all(only_grows(child, changed, grown) for child in plan.children)
        case _:
            return False
