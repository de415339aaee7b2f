"""The operators, one file each with its rule in the header."""

from headrace.algebra.operator import Delta, Operator, PlanError
from headrace.algebra.window_call import WHOLE, Frame, FrameBound, SortKey, WindowCall
from headrace.plan.operators.aggregate import (
    STALE,
    Accumulate,
    Aggregate,
    AggregateCall,
    Extremum,
    GroupState,
    Merge,
)
from headrace.plan.operators.filter import Filter
from headrace.plan.operators.full_join import FullJoin
from headrace.plan.operators.join import Join
from headrace.plan.operators.net import Net, Restrict
from headrace.plan.operators.outer_semi_anti_join import (
    Matching,
    OuterSemiAntiJoin,
    OuterSemiAntiJoinDelta,
)
from headrace.plan.operators.part import Part, Unseen
from headrace.plan.operators.project import Project
from headrace.plan.operators.recursive import Recursive
from headrace.plan.operators.replicate import Replicate
from headrace.plan.operators.scan import Scan, Version
from headrace.plan.operators.top import Top, TopMerge
from headrace.plan.operators.union_all import Empty, Negate, UnionAll
from headrace.plan.operators.unnest import Unnest
from headrace.plan.operators.values import Values
from headrace.plan.operators.window import Window

OPERATORS: tuple[type[Operator], ...] = (
    Scan,
    Values,
    Filter,
    Project,
    Join,
    OuterSemiAntiJoin,
    FullJoin,
    Unnest,
    Replicate,
    UnionAll,
    Negate,
    Empty,
    Net,
    Restrict,
    Aggregate,
    Accumulate,
    Merge,
    OuterSemiAntiJoinDelta,
    Window,
    Top,
    TopMerge,
    Recursive,
    Part,
    Unseen,
)

__all__ = [
    "OPERATORS",
    "STALE",
    "WHOLE",
    "Accumulate",
    "Aggregate",
    "AggregateCall",
    "Delta",
    "Empty",
    "Extremum",
    "Filter",
    "Frame",
    "FrameBound",
    "FullJoin",
    "GroupState",
    "Join",
    "Matching",
    "Merge",
    "Negate",
    "Net",
    "Operator",
    "OuterSemiAntiJoin",
    "OuterSemiAntiJoinDelta",
    "Part",
    "PlanError",
    "Project",
    "Recursive",
    "Replicate",
    "Restrict",
    "Scan",
    "SortKey",
    "Top",
    "TopMerge",
    "UnionAll",
    "Unnest",
    "Unseen",
    "Values",
    "Version",
    "Window",
    "WindowCall",
]
