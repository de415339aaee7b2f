"""Arithmetic and bit operators: PostgreSQL's choice of the operator by its operands' types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions import FUNCTION_BY_NAME, EvaluationError, call
from headrace.functions.intervals import INTERVAL
from headrace.functions.moments import DATE, TIMESTAMP, TIMESTAMPTZ
from headrace.query.coerce import as_moments, operands, settled
from headrace.query.literals import Bound, Untyped, typed
from headrace.query.refusal import located, too_many_digits

_MOMENTS = (DATE, TIMESTAMP, TIMESTAMPTZ)
_SUMS = {"+": "a sum", "-": "a difference"}
_NOTHING = Literal("PT0S", INTERVAL)


def arithmetic(name: str, left: Bound, right: Bound) -> Scalar:
    """Return the operator on two operands, as a call of the row that their types choose."""
    if name == "+":
        left, right = _interval_beside(left, right), _interval_beside(right, left)
    first, second = operands(left, right)
    if name == "+" and second.type in _MOMENTS and first.type not in _MOMENTS:
        first, second = second, first
    row = _row(name, first, second)
    if row in _SUMS and _lacks_digits(row, first, second):
        raise too_many_digits(_SUMS[row], [first.type, second.type])
    if row == "time between":
        first, second = as_moments(first, second)
    return folded(row, first, second)


def _lacks_digits(row: str, left: Scalar, right: Scalar) -> bool:
    """Return whether two numbers have no such call because no numeric has the digits of both."""
    exact = all(side.type.is_integer or side.type.kind == "numeric" for side in (left, right))
    return exact and FUNCTION_BY_NAME[row].type_of((left, right)) is None


def _row(name: str, left: Scalar, right: Scalar) -> str:
    if name not in "+-" or left.type not in (*_MOMENTS, INTERVAL):
        return name
    if left.type == INTERVAL:
        return f"interval {name}"
    if right.type == INTERVAL:
        return f"moment {name}"
    if left.type == DATE and right.type.is_integer:
        return f"date {name}"
    if name == "-" and right.type in _MOMENTS:
        return "days between" if left.type == right.type == DATE else "time between"
    return name


def _interval_beside(bound: Bound, other: Bound) -> Bound:
    """Return the operand; a bare constant that is added to a timestamp is an interval."""
    if not isinstance(bound, Untyped) or isinstance(other, Untyped):
        return bound
    return typed(bound, INTERVAL) if other.type in (TIMESTAMP, TIMESTAMPTZ) else bound


def negated(scalar: Scalar) -> Scalar:
    """Return -a, of a number or an interval."""
    if scalar.type == INTERVAL:
        return folded("interval -", _NOTHING, scalar)
    return call("negate", scalar)


def folded(row: str, *arguments: Scalar) -> Scalar:
    """Return the call, or for constants of time a constant, so that a plan shows the time."""
    called = call(row, *arguments)
    timed = any(argument.type in (*_MOMENTS, INTERVAL) for argument in arguments)
    values = [argument.value for argument in arguments if isinstance(argument, Literal)]
    if not timed or len(values) != len(arguments) or None in values:
        return called
    try:
        return Literal(FUNCTION_BY_NAME[row].evaluate(*values), called.type)
    except EvaluationError:
        return called


_ROWS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseNot: "bits not",
    exp.BitwiseRightShift: ">>",
}
BITS = tuple(_ROWS)


def bits(node: exp.Expr, bounds: Sequence[Bound]) -> Scalar:
    """Return the call that a node of `BITS` stands for."""
    with located(node):
        if len(bounds) == 1:
            return call(_ROWS[type(node)], settled(bounds[0]))
        return call(_ROWS[type(node)], *operands(bounds[0], bounds[1]))
