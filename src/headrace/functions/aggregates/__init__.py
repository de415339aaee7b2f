"""Aggregate functions: their result types, their definitions and their hidden state.

Many are scalar expressions over state columns, sums Σ weight · f(x) over the rows of the group:
where these are exact a change only adds to them. Float sums are not (1e20 + 1 − 1e20), so groups
with one are recomputed when touched; so are groups with an aggregate that only all their rows can
tell. MIN and MAX keep the extremum itself.
"""

from __future__ import annotations

from headrace.functions.aggregates.aggregate import AggregateFunction, HiddenState, Kept
from headrace.functions.aggregates.arrays import ARRAYS
from headrace.functions.aggregates.bits import BITS
from headrace.functions.aggregates.counts import COUNTS
from headrace.functions.aggregates.deviations import DEVIATIONS
from headrace.functions.aggregates.extrema import EXTREMA
from headrace.functions.aggregates.group_rows import GroupRows
from headrace.functions.aggregates.ordered import ORDERED
from headrace.functions.aggregates.regression import REGRESSIONS
from headrace.functions.aggregates.sums import SUMS
from headrace.functions.aggregates.terms import state_type

AGGREGATES: tuple[AggregateFunction, ...] = (
    *COUNTS,
    *SUMS,
    *EXTREMA,
    *DEVIATIONS,
    *REGRESSIONS,
    *BITS,
    *ORDERED,
    *ARRAYS,
)
AGGREGATE_BY_NAME = {function.name: function for function in AGGREGATES}

__all__ = [
    "AGGREGATES",
    "AGGREGATE_BY_NAME",
    "AggregateFunction",
    "GroupRows",
    "HiddenState",
    "Kept",
    "state_type",
]
