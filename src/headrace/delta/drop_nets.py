"""States that no row was ever taken from are read without netting them.

`Net` keeps rows from a query that were added and removed again. It groups by all columns, which
takes Spark many times as long as reading, and where weights are positive there is nothing that it
could drop: the bag is the same without it. A source that was just copied is such a state, so first
computations need no netting.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.plan.operators import (
    Accumulate,
    Filter,
    FullJoin,
    Join,
    MatchJoin,
    Net,
    Operator,
    Project,
    Scan,
    Top,
    UnionAll,
    Unnest,
    Values,
    Window,
)


def drop_nets(plan: Operator, adding: frozenset[str]) -> Operator:
    """The plan without `Net` where its input has positive weights only.

    `adding` are relations whose logs, up to the state that is read, take no row away.
    """
    if isinstance(plan, Window) and isinstance(plan.child, Net):
        # It numbers the copies of a row, and needs them in one place for that.
        return replace(plan, child=Net(drop_nets(plan.child.child, adding)))
    if isinstance(plan, Net) and _only_adds(plan.child, adding):
        return drop_nets(plan.child, adding)
    return plan.with_children(*(drop_nets(child, adding) for child in plan.children))


def _only_adds(plan: Operator, adding: frozenset[str]) -> bool:
    """Whether every row of the plan has a positive weight; one that is replicated may have none."""
    match plan:
        case Scan(relation=relation, version=version):
            return version == "after" and relation in adding
        case Values():
            return True
        case (
            Net() | Filter() | Project() | Unnest() | UnionAll() | Join() | MatchJoin()
            | FullJoin() | Accumulate() | Window() | Top()
        ):  # fmt: skip
            return all(_only_adds(child, adding) for child in plan.children)
        case _:
            return False


def is_grouped(plan: Operator) -> bool:
    """Whether the plan's rows are groups with their keys and states, so that each is there once."""
    match plan:
        case Accumulate():
            return True
        case Project(child=child) | Filter(child=child):
            return is_grouped(child)
        case _:
            return False
