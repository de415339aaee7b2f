"""Constant expressions that a clause needs as a number: offsets, limits, places."""

from __future__ import annotations

from sqlglot import exp

from headrace.algebra.scalar import Call, Literal, Scalar, walk
from headrace.functions import cast
from headrace.functions.errors import EvaluationError
from headrace.plan.evaluate import scalar as evaluate
from headrace.query.coerce import settled
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.refusal import refuse
from headrace.types import BIGINT, Type


def folded(scalar: Scalar) -> Literal | None:
    """The value of an expression that reads nothing; None if it does."""
    if not all(isinstance(node, (Literal, Call)) for node in walk(scalar)):
        return None
    return Literal(evaluate(scalar, {}), scalar.type)


def constant(bound: Bound, what: str, node: exp.Expr, type_: Type | None = None) -> Literal:
    """A constant, refused where it is none; one without a type is read as `type_`."""
    scalar = typed(bound, type_) if isinstance(bound, Untyped) and type_ else settled(bound)
    try:
        literal = folded(scalar)
    except EvaluationError as error:
        raise refuse("invalid-query", f"{what}: {error}", node) from None
    if literal is None:
        raise refuse(
            "unsupported-query",
            f"{what} that is not a constant is not maintained",
            node,
            "Write it as a number.",
        )
    return literal


def whole_number(bound: Bound, what: str, node: exp.Expr) -> int | None:
    """A constant integer; None for NULL."""
    literal = constant(bound, what, node, BIGINT)
    if literal.value is None:
        return None
    if literal.type.is_number:
        # As an assignment to bigint: rounded.
        literal = folded(cast(literal, BIGINT)) or literal
    if not literal.type.is_integer:
        message = f"{what} must be an integer, not {literal.type.sql}"
        raise refuse("invalid-query", message, node)
    assert isinstance(literal.value, int)
    return literal.value
