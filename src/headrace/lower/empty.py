"""What an aggregate is where there was nothing to aggregate."""

from __future__ import annotations

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions import call
from headrace.plan.operators import AggregateCall
from headrace.types import BIGINT

COUNTS = frozenset({"count", "regr_count"})


def on_empty_input(aggregate: AggregateCall) -> Scalar:
    """The call's result after a left join: a count is 0 where there is no group, others NULL."""
    if aggregate.function not in COUNTS:
        return aggregate.output
    return call("coalesce", aggregate.output, Literal(0, BIGINT))
