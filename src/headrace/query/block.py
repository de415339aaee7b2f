"""A bound query, and the columns that identify its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headrace.algebra.scalar import Column
from headrace.plan.operators import Aggregate, Filter, Operator
from headrace.query.literals import Untyped


@dataclass(frozen=True)
class Block:
    """A bound query: its rows and the names of its columns.

    `quotients` are those of its columns that come from a numeric division: they have more digits
    than it is right to show. `untyped` gives, by position, the columns that are bare constants: a
    UNION decides what they are, anywhere else they are text.
    """

    plan: Operator
    names: tuple[str, ...]
    quotients: frozenset[Column] = frozenset()
    untyped: Mapping[int, Untyped] = field(default_factory=dict)


def distinct(plan: Operator) -> Operator:
    """Return every row once: a group by all columns, without anything to compute."""
    return Aggregate(plan, plan.columns, ())


@dataclass(frozen=True)
class RowIdentity:
    """Columns that identify rows; unless they are `unique`, all but equal rows."""

    columns: tuple[Column, ...]
    unique: bool

    def numbered(self, columns: Iterable[Column]) -> RowIdentity:
        """Return the identity with columns in which equal rows now differ."""
        return self if self.unique else replace(self, columns=(*self.columns, *columns))


def row_identity(columns: tuple[Column, ...]) -> RowIdentity:
    """Return all columns of FROM. A table's key would do with fewer, but a user may drop it."""
    return RowIdentity(columns, unique=False)


def group_identity(plan: Operator) -> RowIdentity:
    """Return the keys of groups, or all columns where those of several grouping sets are united."""
    while isinstance(plan, Filter):
        plan = plan.child
    if isinstance(plan, Aggregate):
        return RowIdentity(plan.keys, unique=True)
    return RowIdentity(plan.columns, unique=False)
