"""Operators on the bits of integers."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.algebra.scalar import Scalar
from headrace.functions import call
from headrace.query.coerce import operands, settled
from headrace.query.literals import Bound
from headrace.query.refusal import located

_ROWS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseNot: "bits not",
    exp.BitwiseRightShift: ">>",
}
BITS = tuple(_ROWS)


def bits(node: exp.Expr, bounds: Sequence[Bound]) -> Scalar:
    """The call that a node of `BITS` stands for."""
    with located(node):
        if len(bounds) == 1:
            return call(_ROWS[type(node)], settled(bounds[0]))
        return call(_ROWS[type(node)], *operands(bounds[0], bounds[1]))
