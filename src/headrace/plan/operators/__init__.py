"""The operators, one file each with its rule in the header."""

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
from headrace.plan.operators.join import Join
from headrace.plan.operators.net import Net, Restrict
from headrace.plan.operators.operator import Delta, Operator, PlanError
from headrace.plan.operators.project import Project
from headrace.plan.operators.scan import Scan, Version
from headrace.plan.operators.union_all import Empty, Negate, UnionAll

OPERATORS: tuple[type[Operator], ...] = (
    Scan,
    Filter,
    Project,
    Join,
    UnionAll,
    Negate,
    Empty,
    Net,
    Restrict,
    Aggregate,
    Accumulate,
    Merge,
)

__all__ = [
    "OPERATORS",
    "STALE",
    "Accumulate",
    "Aggregate",
    "AggregateCall",
    "Delta",
    "Empty",
    "Extremum",
    "Filter",
    "GroupState",
    "Join",
    "Merge",
    "Negate",
    "Net",
    "Operator",
    "PlanError",
    "Project",
    "Restrict",
    "Scan",
    "UnionAll",
    "Version",
]
