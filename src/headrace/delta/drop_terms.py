"""The plan of a change without the terms that have no rows because scans are empty.

    ΔL ⋈ R⁺ + L⁻ ⋈ ΔR  =  ΔL ⋈ R⁺        no row of ΔR matters

Where no term is left there is no change at all, and no query has to be run to find that.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.delta.origins import Path
from headrace.plan.operators import (
    Accumulate,
    Aggregate,
    Empty,
    Filter,
    Join,
    Merge,
    Negate,
    Net,
    Operator,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
    Project,
    Replicate,
    Restrict,
    Scan,
    Top,
    TopMerge,
    UnionAll,
    Unnest,
    Window,
)


def drop_terms(plan: Operator, empty: frozenset[Path], path: Path = ()) -> Operator:
    """Return the plan with the scans at these paths taken as empty, Empty if it then has no rows.

    An input without rows that its operator does not drop stays as it was.
    """
    if isinstance(plan, Scan):
        return Empty(plan.columns) if path in empty else plan
    before = plan.children
    after = tuple(drop_terms(c, empty, (*path, place)) for place, c in enumerate(before))
    if _has_no_rows(plan, tuple(isinstance(child, Empty) for child in after)):
        return Empty(plan.columns)
    if isinstance(plan, UnionAll):
        terms = tuple(term for term in after if not isinstance(term, Empty))
        return terms[0] if len(terms) == 1 else UnionAll(terms)
    pairs = zip(before, after, strict=True)
    children = tuple(old if isinstance(new, Empty) else new for old, new in pairs)
    same = all(old is new for old, new in zip(before, children, strict=True))
    return plan if same else plan.with_children(*children)


def _has_no_rows(plan: Operator, empty: tuple[bool, ...]) -> bool:
    """Return whether a node has no rows, given which of its inputs have none."""
    match plan:
        case Empty():
            return True
        case Join() | Restrict():
            return any(empty)
        case OuterSemiAntiJoin(kind="semi"):
            return any(empty)
        case OuterSemiAntiJoin():
            return empty[0]
        case OuterSemiAntiJoinDelta():
            # Rows that changed, and rows whose matches changed.
            return empty[0] and empty[1]
        case Merge() | TopMerge():
            return empty[1]
        case Aggregate(keys=keys) | Window(keys=keys) | Top(keys=keys):
            return bool(keys) and all(empty)
        case Accumulate(state=state):
            return bool(state.keys) and all(empty)
        case Filter() | Project() | Negate() | Net() | Replicate() | Unnest() | UnionAll():
            return all(empty)
        case _:
            return False


def scans(plan: Operator, path: Path = ()) -> Iterator[tuple[Path, Scan]]:
    """Return every scan of the plan with its path."""
    if isinstance(plan, Scan):
        yield path, plan
    for place, child in enumerate(plan.children):
        yield from scans(child, (*path, place))
