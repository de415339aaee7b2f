"""Expressions as the binder understands them, over columns a0, a1, …"""

from __future__ import annotations

from headrace.algebra.scalar import Column, Scalar, substitute
from headrace.plan.operators import Project, Scan
from headrace.query import BoundColumn, BoundTable, bind
from headrace.types import Type


class Arguments:
    """A schema of one table: the columns a0, a1, …"""

    def __init__(self, types: tuple[Type, ...]) -> None:
        columns = tuple(BoundColumn(f"a{i}", f"a{i}", t, t.sql) for i, t in enumerate(types))
        self.bound = BoundTable("r1", "public", "arguments", columns, ())

    def resolve(self, schema: str | None, name: str) -> BoundTable:
        assert (schema, name) == (None, "arguments")
        return self.bound


def scalar_of(text: str, types: tuple[Type, ...]) -> Scalar:
    """The expression as the binder understands it, over columns a0, a1, …"""
    plan = bind(f"SELECT {text} AS x FROM arguments", Arguments(types)).plan
    assert isinstance(plan, Project), plan
    assert isinstance(plan.child, Scan), plan.child
    names = {column: physical for physical, column in plan.child.fields}
    return substitute(plan.outputs[0][1], lambda c: Column(names[c], c.type))
