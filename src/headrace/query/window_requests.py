"""The window calls that a query block asks for, and their plan.

One Window for each set of partition columns:

Window over … over Window over Project (partition and sort columns, arguments) over the block's rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import Column, Scalar
from headrace.functions.windows import OF_ALL_ROWS, has_places
from headrace.plan.operators import Frame, Operator, Project, SortKey, Window, WindowCall
from headrace.query.grouping import is_quotient
from headrace.query.ids import ColumnIds
from headrace.query.ordering import ties_by
from headrace.query.row_identity import RowIdentity
from headrace.types import Type


@dataclass(frozen=True)
class WindowRequest:
    """One call for the plan, its columns still expressions. Equal requests are computed once."""

    function: str
    arguments: tuple[Scalar, ...]
    keys: tuple[Scalar, ...]
    order: tuple[tuple[Scalar, bool, bool], ...]
    frame: Frame | None
    number: int | None
    type: Type


class WindowRequests:
    """Collects the window calls of one block."""

    def __init__(self, ids: ColumnIds) -> None:
        self._ids = ids
        self._requests: dict[WindowRequest, tuple[Column, exp.Expr]] = {}

    def __bool__(self) -> bool:
        return bool(self._requests)

    def column(self, request: WindowRequest, node: exp.Expr) -> Column:
        """The column that will hold the call's result."""
        if request not in self._requests:
            self._requests[request] = (self._ids.computed(request.function, request.type), node)
        return self._requests[request][0]

    @property
    def outputs(self) -> frozenset[Column]:
        return frozenset(column for column, _ in self._requests.values())

    @property
    def scalars(self) -> dict[Scalar, exp.Expr]:
        """What the calls are computed from, each with the call that it is part of."""
        found: dict[Scalar, exp.Expr] = {}
        for request, (_, node) in self._requests.items():
            sorted_ = (scalar for scalar, _, _ in request.order)
            for scalar in (*request.keys, *request.arguments, *sorted_):
                found.setdefault(scalar, node)
        return found

    def quotients(self, parts: Sequence[Scalar], below: frozenset[Column]) -> frozenset[Column]:
        """The results that come from a numeric division: in the call, or in what it reads."""
        over = dict(zip(self.scalars, parts, strict=True))
        return frozenset(
            column
            for request, (column, _) in self._requests.items()
            if (request.function in OF_ALL_ROWS and OF_ALL_ROWS[request.function].quotient)
            or any(is_quotient(over[argument], below) for argument in request.arguments)
        )

    def plan(self, rows: Operator, parts: Sequence[Scalar], identity: RowIdentity) -> Operator:
        """The rows with the results of all calls.

        `parts` says `scalars` over these rows.
        """
        over = dict(zip(self.scalars, parts, strict=True)).__getitem__
        computed: dict[Scalar, Column] = {column: column for column in rows.columns}
        for scalar in parts:
            if scalar not in computed:
                computed[scalar] = self._ids.computed("argument", scalar.type)
        if len(computed) > len(rows.columns):
            rows = Project(rows, tuple((column, scalar) for scalar, column in computed.items()))
        partitions: dict[frozenset[Column], list[tuple[WindowRequest, Column]]] = {}
        for request, (output, _) in self._requests.items():
            keys = frozenset(computed[over(key)] for key in request.keys)
            partitions.setdefault(keys, []).append((request, output))
        for calls in partitions.values():
            keys_ = tuple(dict.fromkeys(computed[over(key)] for key in calls[0][0].keys))
            planned = tuple(
                _planned(request, output, lambda s: computed[over(s)], keys_, identity.columns)
                for request, output in calls
            )
            rows = Window(rows, keys_, planned)
            # Copies of a row have places of their own now, and keep them.
            identity = identity.numbered(c.output for c in planned if has_places(c))
        return rows


def _planned(
    request: WindowRequest,
    output: Column,
    column: Callable[[Scalar], Column],
    keys: tuple[Column, ...],
    identity: Sequence[Column],
) -> WindowCall:
    order: dict[Column, SortKey] = {}
    for scalar, descending, nulls_first in request.order:
        order.setdefault(column(scalar), SortKey(column(scalar), descending, nulls_first))
    planned = WindowCall(
        output,
        request.function,
        tuple(column(argument) for argument in request.arguments),
        tuple(order.values()),
        (),
        request.frame,
        request.number,
    )
    if not has_places(planned):
        return planned
    return replace(planned, ties=ties_by(identity, (*order, *keys)))
