"""A guard against reading an expression otherwise than PostgreSQL would.

sqlglot parses many dialects with one order of precedence, which is not in every place
PostgreSQL's. The tree that fits an order of precedence is unique, so it is enough to look at each
operator and its operands: where no parentheses stand between them, the operand must bind tighter.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headrace.query.refusal import refuse

_NOT, _IS, _COMPARISON, _RANGE, _OTHER, _SUM, _PRODUCT = range(3, 10)
_POWER, _ZONE, _COLLATE, _SIGN = range(10, 14)
_LEVELS: dict[type[exp.Expr], int] = {
    exp.Or: 1,
    exp.And: 2,
    exp.Not: _NOT,
    exp.Is: _IS,
    exp.NullSafeEQ: _IS,
    exp.NullSafeNEQ: _IS,
    exp.EQ: _COMPARISON,
    exp.NEQ: _COMPARISON,
    exp.LT: _COMPARISON,
    exp.LTE: _COMPARISON,
    exp.GT: _COMPARISON,
    exp.GTE: _COMPARISON,
    exp.Between: _RANGE,
    exp.In: _RANGE,
    exp.Like: _RANGE,
    exp.ILike: _RANGE,
    exp.SimilarTo: _RANGE,
    exp.Escape: _RANGE,
    exp.DPipe: _OTHER,
    exp.RegexpLike: _OTHER,
    exp.RegexpILike: _OTHER,
    exp.StartsWith: _OTHER,
    exp.BitwiseAnd: _OTHER,
    exp.BitwiseOr: _OTHER,
    exp.BitwiseXor: _OTHER,
    exp.BitwiseLeftShift: _OTHER,
    exp.BitwiseRightShift: _OTHER,
    exp.BitwiseNot: _OTHER,
    exp.Sqrt: _OTHER,
    exp.ArrayContainsAll: _OTHER,
    exp.ArrayContainedBy: _OTHER,
    exp.ArrayOverlaps: _OTHER,
    exp.JSONExtract: _OTHER,
    exp.JSONExtractScalar: _OTHER,
    exp.JSONBExtract: _OTHER,
    exp.JSONBExtractScalar: _OTHER,
    exp.JSONBContainsTopKey: _OTHER,
    exp.Add: _SUM,
    exp.Sub: _SUM,
    exp.Mul: _PRODUCT,
    exp.Div: _PRODUCT,
    exp.Mod: _PRODUCT,
    exp.Pow: _POWER,
    exp.AtTimeZone: _ZONE,
    exp.Collate: _COLLATE,
    exp.Neg: _SIGN,
}
_CHAINS = frozenset({1, 2, _OTHER, _SUM, _PRODUCT, _POWER, _ZONE})
_NEGATED = (
    *(exp.In, exp.Between, exp.Is, exp.Like, exp.ILike, exp.SimilarTo, exp.Escape),
    *(exp.RegexpLike, exp.RegexpILike),
)
_ATOM = 100


def check_precedence(tree: exp.Expr) -> None:
    """Refuse an expression whose operators PostgreSQL would group in another way, or not at all."""
    for node in tree.walk():
        level = _LEVELS.get(type(node))
        if level is None:
            continue
        for operand, leftmost in _operands(node):
            inner = _level(operand)
            chained = inner == level and ((leftmost and level in _CHAINS) or level in (_NOT, _SIGN))
            if inner <= level and not chained:
                raise refuse(
                    "unsupported-query",
                    f"the order of operators is unclear in: {node.sql(dialect='postgres')}",
                    node,
                    "Put parentheses around the inner expression.",
                )


def _level(node: exp.Expr) -> int:
    """How tightly the node binds; `x NOT IN (…)` is NOT over IN in the tree, but binds as IN."""
    if isinstance(node, exp.Not) and isinstance(node.this, _NEGATED):
        node = node.this
    return _LEVELS.get(type(node), _ATOM)


def _operands(node: exp.Expr) -> Iterator[tuple[exp.Expr, bool]]:
    """The operands that no bracket closes off, each with whether it stands on the left."""
    match node:
        case exp.Not() | exp.Neg() | exp.BitwiseNot() | exp.Sqrt():
            yield node.this, False
        case exp.Escape():
            # The match below it stands for both.
            yield node.args["expression"], False
        case exp.Is() | exp.In() | exp.Collate() | exp.AtTimeZone():
            yield node.this, True
        case exp.Between():
            yield node.this, True
            yield node.args["low"], False
            yield node.args["high"], False
        case _:
            yield node.this, True
            yield node.args["expression"], False
