"""Which columns of a block's rows tell them apart, so that they make an order total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.algebra.scalar import Column
from headrace.plan.operators import Aggregate, Filter, Operator


@dataclass(frozen=True)
class RowIdentity:
    """Columns that tell rows apart; unless they are `unique`, all but equal rows."""

    columns: tuple[Column, ...]
    unique: bool

    def numbered(self, columns: Iterable[Column]) -> RowIdentity:
        """With columns in which equal rows now differ."""
        return self if self.unique else replace(self, columns=(*self.columns, *columns))


def row_identity(columns: tuple[Column, ...]) -> RowIdentity:
    """All columns of FROM. A table's key would do with fewer, but a user may drop it."""
    return RowIdentity(columns, unique=False)


def group_identity(plan: Operator) -> RowIdentity:
    """The keys of groups, or all columns where those of several grouping sets are united."""
    while isinstance(plan, Filter):
        plan = plan.child
    if isinstance(plan, Aggregate):
        return RowIdentity(plan.keys, unique=True)
    return RowIdentity(plan.columns, unique=False)
