"""UNION, INTERSECT and EXCEPT: branches brought to common types, pair by pair as PostgreSQL does.

A UNION ALL B       the sum of both
A UNION B           every row of the sum once
A INTERSECT [ALL] B, A EXCEPT [ALL] B    a `SetOperation`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from sqlglot import exp

from headrace.algebra.scalar import Column, Scalar
from headrace.plan.operators import Operator, Project, UnionAll
from headrace.plan.surface_operators import SetOperation
from headrace.query.block import Block, distinct
from headrace.query.coerce import as_type, common_to
from headrace.query.identifiers import ColumnIds
from headrace.query.literals import Bound, Untyped
from headrace.query.refusal import incomparable, located, refuse, require_exact
from headrace.types import Type

Part = tuple[Operator, tuple[Bound, ...]]


@dataclass(frozen=True)
class Branches:
    """Branches that were united so far: each a plan and the scalars that its columns have become.

    `quotients` are positions of columns that come from a division in some branch. `once` says that
    equal rows count once.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...]
    quotients: frozenset[int] = frozenset()
    once: bool = False

    @staticmethod
    def of(block: Block) -> Branches:
        columns = block.plan.columns
        bounds = tuple(block.untyped.get(i, column) for i, column in enumerate(columns))
        quotients = {i for i, column in enumerate(columns) if column in block.quotients}
        return Branches(block.names, ((block.plan, bounds),), frozenset(quotients))

    def followed(self, block: Block, ids: ColumnIds, node: exp.SetOperation) -> Branches:
        """Return the branches so far, combined with one more by the operation."""
        if not isinstance(node, exp.Union):
            return self._compared(block, ids, node)
        once = bool(node.args.get("distinct"))
        if self.once and not once:
            # A later UNION makes an earlier one superfluous; UNION ALL does not.
            return Branches.of(self.block(ids)).followed(block, ids, node)
        right = Branches.of(block)
        types = self.common_types(right, node)
        for type_ in types if once else ():
            _require_comparable(type_, node)
        parts = tuple(_typed(part, types, node) for part in (*self.parts, *right.parts))
        return replace(self, parts=parts, quotients=self.quotients | right.quotients, once=once)

    def _compared(self, block: Block, ids: ColumnIds, node: exp.SetOperation) -> Branches:
        """Return INTERSECT or EXCEPT of the branches so far and one more.

        Constants without a type are typed by this pair, not before.
        """
        left = self if len(self.parts) == 1 else Branches.of(self.block(ids))
        right = Branches.of(block)
        types = left.common_types(right, node)
        for type_ in types:
            _require_comparable(type_, node)
        columns = tuple(
            ids.computed(name, type_) for name, type_ in zip(self.names, types, strict=True)
        )
        first = _projected(_typed(left.parts[0], types, node), columns)
        second = _projected(_typed(right.parts[0], types, node), columns)
        kind: OneOf["except", "intersect"] = (
            "intersect" if isinstance(node, exp.Intersect) else "except"
        )
        plan = SetOperation(first, second, kind, once=bool(node.args.get("distinct")))
        # Rows of EXCEPT are rows of its left side, those of INTERSECT may be shown from either.
        divided = left.quotients
        if isinstance(node, exp.Intersect):
            divided |= right.quotients
        return Branches.of(Block(plan, self.names, frozenset(columns[i] for i in divided)))

    def common_types(self, right: Branches, node: exp.SetOperation) -> tuple[Type, ...]:
        """Return the types that the operation gives to its columns."""
        word = _word(node)
        if len(right.names) != len(self.names):
            message = f"each {word} query must have the same number of columns"
            raise refuse("invalid-query", message, node)
        pairs = zip(self.parts[0][1], right.parts[0][1], strict=True)
        with located(node):
            return tuple(common_to(pair, word, node) for pair in pairs)

    def block(self, ids: ColumnIds) -> Block:
        """Return the branches as one query, under the first one's names."""
        if len(self.parts) == 1:
            ((only, _),) = self.parts
            return Block(only, self.names, frozenset(only.columns[i] for i in self.quotients))
        _, first = self.parts[0]
        columns = tuple(
            ids.computed(name, _scalar(bound).type)
            for name, bound in zip(self.names, first, strict=True)
        )
        plan: Operator = UnionAll(tuple(_projected(part, columns) for part in self.parts))
        if self.once:
            plan = distinct(plan)
        return Block(plan, self.names, frozenset(columns[i] for i in self.quotients))


def _word(node: exp.SetOperation) -> str:
    return node.key.upper()


def _typed(part: Part, types: Sequence[Type], node: exp.SetOperation) -> Part:
    plan, bounds = part
    with located(node):
        return plan, tuple(as_type(b, t) for b, t in zip(bounds, types, strict=True))


def _projected(part: Part, columns: tuple[Column, ...]) -> Project:
    plan, bounds = part
    return Project(plan, tuple(zip(columns, map(_scalar, bounds), strict=True)))


def _require_comparable(type_: Type, node: exp.SetOperation) -> None:
    if type_.comparison == "none":
        raise incomparable(_word(node), type_, node)
    require_exact(type_, _word(node), node)


def _scalar(bound: Bound) -> Scalar:
    assert not isinstance(bound, Untyped), "a set operation has typed all constants"
    return bound
