"""Aggregate calls of a query block, and expressions rewritten over its groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import (
    Call,
    Column,
    Literal,
    Outer,
    Scalar,
    Subquery,
    map_outer,
    walk,
)
from headrace.functions import AGGREGATE_BY_NAME
from headrace.plan.operators import AggregateCall, SortKey
from headrace.query.identifiers import ColumnIds
from headrace.query.refusal import refuse
from headrace.query.scope import Scope
from headrace.types import BIGINT, INTEGER, Type


def is_quotient(scalar: Scalar, quotients: frozenset[Column] = frozenset()) -> bool:
    """Return whether a numeric comes from a division: here, or in one of the columns named."""
    return scalar.type.rounded is not None and any(
        (isinstance(node, Call) and node.function == "/")
        or node in quotients
        or (isinstance(node, Subquery) and node.plan.columns[0] in quotients)
        for node in walk(scalar)
    )


@dataclass(frozen=True)
class AggregateRequest:
    """One call for the plan, its columns still expressions. Equal requests are computed once."""

    function: str
    arguments: tuple[Scalar, ...]
    type: Type
    distinct: bool = False
    order: tuple[tuple[Scalar, bool, bool], ...] = ()
    only: Scalar | None = None

    @property
    def scalars(self) -> Iterator[Scalar]:
        yield from self.arguments
        yield from (scalar for scalar, _, _ in self.order)
        if self.only is not None:
            yield self.only

    def planned(self, output: Column, columns: Mapping[Scalar, Column]) -> AggregateCall:
        """Return the call over the columns that hold its expressions."""
        arguments = tuple(columns[argument] for argument in self.arguments)
        keys: dict[Column, SortKey] = {}
        for scalar, descending, nulls_first in self.order:
            column = columns[scalar]
            keys.setdefault(column, SortKey(column, descending, nulls_first))
        return AggregateCall(
            output,
            self.function,
            arguments[0] if arguments else None,
            arguments[1:],
            self.distinct,
            tuple(keys.values()),
            None if self.only is None else columns[self.only],
        )


class Aggregates:
    """Collects the aggregate calls of one block, and its calls of GROUPING."""

    def __init__(self, ids: ColumnIds) -> None:
        self._ids = ids
        self._requests: dict[AggregateRequest, Column] = {}
        self.groupings: dict[tuple[Scalar, ...], tuple[Column, exp.Expr]] = {}

    @staticmethod
    def knows(name: str) -> bool:
        return name in AGGREGATE_BY_NAME and bool(AGGREGATE_BY_NAME[name].syntax)

    def column(self, request: AggregateRequest) -> Column:
        """Return the column that will hold the call's result."""
        if request not in self._requests:
            self._requests[request] = self._ids.computed(request.function, request.type)
        return self._requests[request]

    def grouping(self, arguments: tuple[Scalar, ...], node: exp.Expr) -> Column:
        """Return the column that will say which of the keys are not in a row's grouping set."""
        if arguments not in self.groupings:
            self.groupings[arguments] = (self._ids.computed("grouping", INTEGER), node)
        return self.groupings[arguments][0]

    def count_rows(self) -> None:
        """Add COUNT(*), for a block that groups and computes nothing else."""
        self.column(AggregateRequest("count", (), BIGINT))

    @property
    def arguments(self) -> tuple[Scalar, ...]:
        """The scalars that the calls are computed from, each once."""
        return tuple(dict.fromkeys(s for request in self._requests for s in request.scalars))

    @property
    def outputs(self) -> frozenset[Column]:
        groupings = (column for column, _ in self.groupings.values())
        return frozenset((*self._requests.values(), *groupings))

    def quotients(self, below: frozenset[Column]) -> frozenset[Column]:
        """Return the results that come from a numeric division.

        The division is here, or in one of the columns below.
        """
        return frozenset(
            column
            for request, column in self._requests.items()
            if column.type.rounded
            and (
                AGGREGATE_BY_NAME[request.function].quotient
                or any(is_quotient(argument, below) for argument in request.arguments)
            )
        )

    def calls(self, columns: Mapping[Scalar, Column]) -> tuple[AggregateCall, ...]:
        """Return the calls over the columns that hold their arguments."""
        return tuple(request.planned(c, columns) for request, c in self._requests.items())

    def __bool__(self) -> bool:
        return bool(self._requests) or bool(self.groupings)


class GroupKeys:
    """The keys of a grouped block: what they stand for, and which column holds each.

    A column that is not a key itself is allowed where the keys that all grouping sets have contain
    a key of its table: all rows of a group then agree on it, and it becomes one more key.
    """

    def __init__(
        self,
        keys: dict[Scalar, Column],
        common: frozenset[Scalar],
        aggregates: frozenset[Column],
        scope: Scope,
    ) -> None:
        self.keys = dict(keys)
        self._common = common
        self._aggregates = aggregates
        self._scope = scope

    def over(self, scalar: Scalar, node: exp.Expr) -> Scalar:
        """Return an expression over rows, said over groups: keys and aggregate results."""
        key = self.keys.get(scalar)
        if key is not None:
            return key
        match scalar:
            case Column():
                if scalar in self._aggregates:
                    return scalar
                if self._depends(scalar):
                    self.keys[scalar] = scalar
                    return scalar
                raise refuse(
                    "invalid-query",
                    f'column "{self._scope.label(scalar)}" must appear in GROUP BY'
                    " or be used in an aggregate function",
                    node,
                )
            case Call(arguments=arguments):
                return replace(scalar, arguments=tuple(self.over(a, node) for a in arguments))
            case Subquery():
                return map_outer(scalar, lambda read: self.over(read, node))
            case Literal() | Outer():
                return scalar

    def _depends(self, column: Column) -> bool:
        for source in self._scope.sources:
            if any(visible.scalar == column for visible in source.columns):
                return any(all(part in self._common for part in key) for key in source.keys)
        return False
