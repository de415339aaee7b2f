"""UNION and UNION ALL: branches brought to common types, as PostgreSQL does it pair by pair.

A UNION ALL B   =  the sum of both
A UNION B       =  every row of the sum once
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.plan.operators import Operator, Project, UnionAll
from headrace.plan.scalar import Scalar
from headrace.query.block import Block, distinct
from headrace.query.coerce import as_type, common_to
from headrace.query.ids import ColumnIds
from headrace.query.literals import Bound, Untyped
from headrace.query.refusal import located, refuse


@dataclass(frozen=True)
class Branches:
    """Branches that were united so far: each a plan and the scalars that its columns have become.

    `quotients` are positions of columns that come from a division in some branch. `once` says that
    equal rows count once.
    """

    names: tuple[str, ...]
    parts: tuple[tuple[Operator, tuple[Bound, ...]], ...]
    quotients: frozenset[int] = frozenset()
    once: bool = False

    @staticmethod
    def of(block: Block) -> Branches:
        columns = block.plan.columns
        bounds = tuple(block.untyped.get(i, column) for i, column in enumerate(columns))
        quotients = {i for i, column in enumerate(columns) if column in block.quotients}
        return Branches(block.names, ((block.plan, bounds),), frozenset(quotients))

    def union(self, block: Block, ids: ColumnIds, node: exp.Union) -> Branches:
        """With one branch more."""
        once = bool(node.args.get("distinct"))
        if self.once and not once:
            # A later UNION makes an earlier one superfluous; UNION ALL does not.
            return Branches.of(self.block(ids)).union(block, ids, node)
        right = Branches.of(block)
        if len(right.names) != len(self.names):
            message = "each UNION query must have the same number of columns"
            raise refuse("invalid-query", message, node)
        pairs = zip(self.parts[0][1], right.parts[0][1], strict=True)
        with located(node):
            types = [common_to(pair, "UNION", node) for pair in pairs]
            parts = tuple(
                (plan, tuple(as_type(b, t) for b, t in zip(bounds, types, strict=True)))
                for plan, bounds in (*self.parts, *right.parts)
            )
        for type_ in types if once else ():
            if type_.comparison == "none":
                raise refuse("unsupported-type", f"UNION on {type_.sql} is not maintained", node)
        return replace(self, parts=parts, quotients=self.quotients | right.quotients, once=once)

    def block(self, ids: ColumnIds) -> Block:
        """The branches as one query, under the first one's names."""
        _, first = self.parts[0]
        columns = tuple(
            ids.computed(name, _scalar(bound).type)
            for name, bound in zip(self.names, first, strict=True)
        )
        plan: Operator = UnionAll(
            tuple(
                Project(plan, tuple(zip(columns, map(_scalar, bounds), strict=True)))
                for plan, bounds in self.parts
            )
        )
        if self.once:
            plan = distinct(plan)
        return Block(plan, self.names, frozenset(columns[i] for i in self.quotients))


def _scalar(bound: Bound) -> Scalar:
    assert not isinstance(bound, Untyped), "a union has typed all constants"
    return bound
