"""A query block over its groups.

Filter (HAVING) over Aggregate over Project (keys and arguments) over the block's rows

Several grouping sets are the sum of one Aggregate each, with NULL for the keys that a set lacks:

Filter (HAVING) over UnionAll of Project (all keys, NULL where missing) over Aggregate
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal, Scalar, columns_of
from headrace.plan.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    Operator,
    Project,
    UnionAll,
)
from headrace.query.grouping import Aggregates, GroupKeys, is_quotient
from headrace.query.ids import ColumnIds
from headrace.query.refusal import refuse
from headrace.query.scope import Scope
from headrace.types import INTEGER

MAXIMUM_GROUPING = 31
"""Arguments of GROUPING: the result has a bit for each."""


@dataclass(frozen=True)
class Key:
    """One key of GROUP BY, with a name for its column."""

    scalar: Scalar
    name: str
    node: exp.Expr


@dataclass(frozen=True)
class Having:
    """The condition of HAVING over rows, and where it stands."""

    condition: Scalar
    node: exp.Expr


class Grouped:
    """The groups of a block: one for each of several sets of keys, at least one set.

    Expressions are said over the groups first, by `over`: that may find further keys. Then `plan`
    gives the groups' rows. `windows` are columns that windows over the groups will compute.
    """

    def __init__(
        self,
        sets: Sequence[Sequence[Key]],
        aggregates: Aggregates,
        windows: frozenset[Column],
        scope: Scope,
        ids: ColumnIds,
    ) -> None:
        if not all(sets) and not aggregates.arguments:
            # The one group without keys has a row even where there is nothing to compute.
            aggregates.count_rows()
        columns: dict[Scalar, Column] = {}
        for key in (key for keys in sets for key in keys):
            for kind, results in (("aggregate", aggregates.outputs), ("window", windows)):
                if not columns_of(key.scalar).isdisjoint(results):
                    message = f"{kind} functions are not allowed in GROUP BY"
                    raise refuse("invalid-query", message, key.node)
            if key.scalar not in columns:
                columns[key.scalar] = _column(key.scalar, key.name, ids)
        self._sets = [frozenset(key.scalar for key in keys) for keys in sets]
        common = frozenset(columns).intersection(*self._sets)
        self._written = frozenset(columns)
        self._aggregates = aggregates
        self._scope = scope
        self._ids = ids
        self._groups = GroupKeys(columns, common, aggregates.outputs | windows, scope)

    def over(self, scalar: Scalar, node: exp.Expr) -> Scalar:
        """An expression of the block, said over its groups."""
        return self._groups.over(scalar, node)

    @property
    def quotients(self) -> frozenset[Column]:
        """The columns of the groups that come from a numeric division."""
        below = self._scope.all_quotients
        keys = self._groups.keys.items()
        divided = frozenset(column for scalar, column in keys if is_quotient(scalar, below))
        return self._aggregates.quotients(below) | divided

    def plan(self, rows: Operator, having: Having | None) -> Operator:
        """The groups of `rows` that HAVING lets through."""
        condition = None if having is None else self.over(having.condition, having.node)
        computed = dict(self._groups.keys)
        for argument in self._aggregates.arguments:
            if argument not in computed:
                computed[argument] = _column(argument, "argument", self._ids)
        if computed:
            rows = Project(rows, tuple((column, scalar) for scalar, column in computed.items()))
        calls = self._aggregates.calls(computed)
        plans = [self._of_set(keys, rows, calls) for keys in self._sets]
        plan = plans[0] if len(plans) == 1 else UnionAll(tuple(plans))
        return plan if condition is None else Filter(plan, condition)

    def _of_set(
        self, keys: frozenset[Scalar], rows: Operator, calls: Sequence[AggregateCall]
    ) -> Operator:
        missing = self._written - keys
        grouped = tuple(c for scalar, c in self._groups.keys.items() if scalar not in missing)
        groups = Aggregate(rows, grouped, tuple(calls))
        if len(self._sets) == 1 and not self._aggregates.groupings:
            return groups
        outputs: list[tuple[Column, Scalar]] = [
            (column, Literal(None, column.type) if scalar in missing else column)
            for scalar, column in self._groups.keys.items()
        ]
        outputs += ((call.output, call.output) for call in calls)
        outputs += self._groupings(keys)
        return Project(groups, tuple(outputs))

    def _groupings(self, keys: frozenset[Scalar]) -> list[tuple[Column, Scalar]]:
        """For each call of GROUPING the bits of its arguments, the last one lowest."""
        found: list[tuple[Column, Scalar]] = []
        for arguments, (column, node) in self._aggregates.groupings.items():
            if not 0 < len(arguments) <= MAXIMUM_GROUPING:
                message = f"GROUPING must have 1 to {MAXIMUM_GROUPING} arguments"
                raise refuse("invalid-query", message, node)
            bits = 0
            for argument in arguments:
                if argument not in self._written:
                    message = "arguments to GROUPING must be grouping expressions"
                    raise refuse("invalid-query", message, node)
                bits = bits * 2 + (argument not in keys)
            found.append((column, Literal(bits, INTEGER)))
        return found


def _column(scalar: Scalar, name: str, ids: ColumnIds) -> Column:
    return scalar if isinstance(scalar, Column) else ids.computed(name, scalar.type)
