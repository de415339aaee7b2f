"""A delta query without the terms that have no rows in this refresh.

Spark plans a shorter text faster, and a text that it knows not at all. So the terms are left out
the same way again and again; where another set of them has no rows each time, the whole query is
run, whose plan is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from headrace.delta.drop_terms import drop_terms, scans
from headrace.delta.origins import Path
from headrace.engine.steps import ComputeStage
from headrace.plan.operators import Empty, Operator
from headrace.refresh.plan import names_of
from headrace.render import inputs_of, render

# A plan with this part of its scans left is rendered again.
WORTH_ANOTHER_TEXT = 0.6
MOST_QUERIES = 512


@dataclass(frozen=True)
class _RemainingQuery:
    """A step, known by the text of its query, and what was left out of it the first time."""

    sql: str
    step: ComputeStage = field(compare=False)
    left_out: list[frozenset[Path]] = field(default_factory=list, compare=False)


def remaining(step: ComputeStage, empty: frozenset[Path]) -> ComputeStage | None:
    """Return the step without the terms that empty scans leave without rows, if worth it.

    None if no term is left.
    """
    if not empty:
        return step
    query = _known(_RemainingQuery(step.sql, step))
    plan = _shorter(query, empty)
    if isinstance(plan, Empty):
        return None
    if len(list(scans(plan))) > WORTH_ANOTHER_TEXT * len(list(scans(step.plan))):
        return step
    if not query.left_out:
        query.left_out.append(empty)
    if query.left_out != [empty]:
        return step
    read = {plan_input.name for plan_input in inputs_of(plan)}
    # Inputs are given in this order and with all of these columns.
    inputs = tuple(plan_input for plan_input in step.inputs if plan_input.name in read)
    return replace(step, plan=plan, inputs=inputs, sql=_text(query, empty))


@lru_cache(MOST_QUERIES)
def _known(query: _RemainingQuery) -> _RemainingQuery:
    """Return the query that came first of those with the same text."""
    return query


@lru_cache(MOST_QUERIES)
def _shorter(query: _RemainingQuery, empty: frozenset[Path]) -> Operator:
    return drop_terms(query.step.plan, empty)


@lru_cache(MOST_QUERIES)
def _text(query: _RemainingQuery, empty: frozenset[Path]) -> str:
    plan = _shorter(query, empty)
    return render(plan, names_of(query.step.stage, plan), one_partition=True)
