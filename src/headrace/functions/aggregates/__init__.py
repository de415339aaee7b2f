"""Aggregate functions: their result types, their definitions and their hidden state.

Many are scalar expressions over state columns, sums Σ weight · f(x) over the rows of the group:
where these are exact a change only adds to them. Float sums are not (1e20 + 1 − 1e20), so groups
with one are recomputed when touched; so are groups with an aggregate that needs all their rows.
MIN and MAX keep the extremum itself.
"""

from __future__ import annotations

from headrace.functions.aggregates.aggregate import (
    AggregateFunction,
    GroupRows,
    HiddenState,
    Kept,
    state_type,
)
from headrace.functions.aggregates.counts import BITS, COUNTS
from headrace.functions.aggregates.deviations import DEVIATIONS
from headrace.functions.aggregates.extrema import EXTREMA
from headrace.functions.aggregates.ordered import ARRAYS, ORDERED
from headrace.functions.aggregates.regression import REGRESSIONS
from headrace.functions.aggregates.sums import SUMS

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
