"""Which side of a join is known to have few rows: one that reads nothing but changes.

Changes that a query of one partition reads are held in memory before, so one more copy can be.
"""

from __future__ import annotations

from headrace.plan.operators import (
    Filter,
    FullJoin,
    Join,
    MatchJoin,
    Negate,
    Net,
    Operator,
    Part,
    Project,
    Scan,
    UnionAll,
)

_FEW = frozenset({"change", "found", "lost", "stale"})


def small_side(plan: Join | MatchJoin | FullJoin) -> int | None:
    """The place of the side that is worth hashing, if Spark can hash it for this join."""
    if plan.condition is None:
        return None
    hashable: tuple[int, ...]
    match plan:
        case Join():
            hashable = (0, 1)
        case MatchJoin(kind="left"):
            hashable = (0,)
        case MatchJoin():
            hashable = (1,)
        case FullJoin():
            hashable = ()
    return next((place for place in hashable if _is_small(plan.children[place])), None)


def _is_small(plan: Operator) -> bool:
    match plan:
        case Scan(version=version):
            return version in _FEW
        case Filter() | Project() | Negate() | Net() | Part() | UnionAll():
            return all(map(_is_small, plan.children))
        case _:
            return False
