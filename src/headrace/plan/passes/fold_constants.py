"""fold_constants: expressions that read no column are computed when the query is planned.

    x <= 1 + 10   →   x <= 11

Beside the work it saves, a constant cannot raise, so the condition that it is part of may move. A
call that does raise stays: PostgreSQL reports it only if some row needs it.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.scalar import Call, Literal, Scalar
from headrace.functions import EvaluationError
from headrace.plan.evaluate import scalar as evaluated
from headrace.plan.operators import Operator


def fold_constants(plan: Operator) -> Operator:
    """Return the plan with calls of constants replaced by their values."""
    children = (fold_constants(child) for child in plan.children)
    return plan.with_children(*children).with_scalars(tuple(map(folded, plan.scalars)))


def folded(scalar: Scalar) -> Scalar:
    """Return the expression with calls of constants replaced by their values."""
    if not isinstance(scalar, Call):
        return scalar
    call = replace(scalar, arguments=tuple(map(folded, scalar.arguments)))
    constant = all(isinstance(argument, Literal) for argument in call.arguments)
    if not constant or not call.arguments or not call.type.row.foldable:
        return call
    try:
        return Literal(evaluated(call, {}), call.type)
    except EvaluationError:
        return call
