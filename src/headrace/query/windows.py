"""Calls with OVER, by PostgreSQL's rules, and the plan of a block's window calls.

An aggregate becomes calls over its parts, sums and extrema over the frame, and its value an
expression of these; an aggregate that needs all rows becomes a call of itself.

The plan has one Window for each set of partition columns:

Window over … over Window over Project (partition and sort columns, arguments) over the block's rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import AGGREGATE_BY_NAME, state_type
from headrace.functions.windows import OF_ALL_ROWS, WINDOW_FUNCTION_BY_NAME, has_places
from headrace.plan.operators import Frame, Operator, Project, SortKey, Window, WindowCall
from headrace.query.aggregate_calls import request as aggregate_request
from headrace.query.aggregate_calls import written
from headrace.query.block import RowIdentity
from headrace.query.coerce import settled, unified, whole_number
from headrace.query.grouping import AggregateRequest, Aggregates, is_quotient
from headrace.query.identifiers import ColumnIds, name_of
from headrace.query.literals import Bound
from headrace.query.ordering import Sorted, sorted_entry, ties_by
from headrace.query.refusal import incomparable, refuse, require_exact
from headrace.query.window_clauses import clauses_of, frame_of, named_windows
from headrace.types import BIGINT, DOUBLE, INTEGER, Type

if TYPE_CHECKING:
    from headrace.query.expressions import Expressions


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
        """Return the column that will hold the call's result."""
        if request not in self._requests:
            self._requests[request] = (self._ids.computed(request.function, request.type), node)
        return self._requests[request][0]

    @property
    def outputs(self) -> frozenset[Column]:
        return frozenset(column for column, _ in self._requests.values())

    @property
    def scalars(self) -> dict[Scalar, exp.Expr]:
        """The scalars that the calls are computed from, each with the call that it is part of."""
        node_by_scalar: dict[Scalar, exp.Expr] = {}
        for request, (_, node) in self._requests.items():
            sorted_ = (scalar for scalar, _, _ in request.order)
            for scalar in (*request.keys, *request.arguments, *sorted_):
                node_by_scalar.setdefault(scalar, node)
        return node_by_scalar

    def quotients(self, parts: Sequence[Scalar], below: frozenset[Column]) -> frozenset[Column]:
        """Return the results that come from a numeric division.

        The division is in the call, or in a column that it reads.
        """
        over = dict(zip(self.scalars, parts, strict=True))
        return frozenset(
            column
            for request, (column, _) in self._requests.items()
            if (request.function in OF_ALL_ROWS and OF_ALL_ROWS[request.function].quotient)
            or any(is_quotient(over[argument], below) for argument in request.arguments)
        )

    def plan(self, rows: Operator, parts: Sequence[Scalar], identity: RowIdentity) -> Operator:
        """Return the rows with the results of all calls.

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


_NUMBERS: dict[str, Type] = {
    "row_number": BIGINT,
    "rank": BIGINT,
    "dense_rank": BIGINT,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
}
_VALUES = ("first_value", "last_value")
OF_WINDOWS = frozenset((*_NUMBERS, *_VALUES, "nth_value", "ntile", "lag", "lead"))
"""The functions that need an OVER clause."""


@dataclass(frozen=True)
class Over:
    """A window whose expressions are bound."""

    keys: tuple[Scalar, ...]
    order: tuple[Sorted, ...]
    frame: Frame


class Windows(WindowRequests):
    """Binds the window calls of one block."""

    def __init__(self, select: exp.Select, ids: ColumnIds) -> None:
        super().__init__(ids)
        self._named = named_windows(select)

    def call(self, node: exp.Window, within: Expressions) -> Scalar:
        """Return the expression of a call with OVER, over columns that the plan will have."""
        inside = replace(within, clause="a window", windows=None)
        function, only = node.this, None
        if isinstance(function, exp.Filter):
            only = inside.condition(function.args["expression"].this)
            function = function.this
        if not isinstance(function, exp.Anonymous):
            raise refuse(
                "unsupported-query", f"{function.key.upper()} OVER is not maintained", node
            )
        name = name_of(function.this)
        over = self._over(node, inside)
        if name in OF_WINDOWS:
            if only is not None:
                message = "FILTER is not implemented for non-aggregate window functions"
                raise refuse("invalid-query", message, node)
            return self._special(name, function, over, inside)
        if not Aggregates.knows(name):
            raise refuse("unsupported-function", f"{name} OVER is not maintained", node)
        return self._aggregate(name, function, only, over, inside)

    def _over(self, node: exp.Window, inside: Expressions) -> Over:
        clauses = clauses_of(node, self._named)

        def bound(part: exp.Expr) -> Scalar:
            return settled(inside.bind(part))

        keys = tuple(bound(part) for part in clauses.partition)
        for key, part in zip(keys, clauses.partition, strict=True):
            if key.type.comparison == "none":
                raise incomparable("PARTITION BY", key.type, part)
            require_exact(key.type, "PARTITION BY", part)
        order = tuple(sorted_entry(entry, bound, "ORDER BY") for entry in clauses.order)
        frame = frame_of(clauses.frame, order, inside.bind, node)
        return Over(tuple(dict.fromkeys(keys)), order, frame)

    def _special(self, name: str, node: exp.Anonymous, over: Over, inside: Expressions) -> Scalar:
        """Return a function that only windows have."""
        arguments = [inside.bind(argument) for argument in node.expressions]
        at_most = {"lag": 3, "lead": 3, "nth_value": 2, "ntile": 1, **dict.fromkeys(_VALUES, 1)}
        least = 2 if name == "nth_value" else 0 if name in _NUMBERS else 1
        if not least <= len(arguments) <= at_most.get(name, 0):
            raise refuse("invalid-query", f"{name} does not take {len(arguments)} arguments", node)
        if name in _NUMBERS:
            return self._request(name, (), over, _NUMBERS[name], node)
        if name == "ntile":
            buckets = _positive(arguments[0], "ntile", node)
            if buckets is None:
                return Literal(None, INTEGER)
            return self._request(name, (), over, INTEGER, node, buckets)
        if name in ("lag", "lead"):
            values = unified((arguments[0], *arguments[2:]), name, node)
            type_ = values[0].type.without_length
            offset: int | None = 1
            if len(arguments) > 1:
                offset = whole_number(arguments[1], f"the offset of {name}", node)
            if offset is None:
                return Literal(None, type_)
            return self._request(name, values, over, type_, node, offset)
        value = settled(arguments[0])
        type_ = value.type.without_length
        if name in _VALUES:
            return self._request(name, (value,), over, type_, node)
        place = _positive(arguments[1], name, node)
        if place is None:
            return Literal(None, type_)
        return self._request(name, (value,), over, type_, node, place)

    def _aggregate(
        self,
        name: str,
        node: exp.Anonymous,
        only: Scalar | None,
        over: Over,
        inside: Expressions,
    ) -> Scalar:
        """Return an aggregate over a frame, from the states that it would keep of a group."""
        parts = written(node, name, None)
        if parts.distinct or parts.order:
            clause = "DISTINCT" if parts.distinct else "ORDER BY in an aggregate"
            raise refuse("invalid-query", f"{clause} is not implemented for window functions", node)
        requested_call = aggregate_request(parts, only, inside, over=True)
        function = AGGREGATE_BY_NAME[name]
        states = function.states(*(requested_call.arguments or (None,)))
        if states is None:
            return self._of_all_rows(requested_call, over, node)
        columns: list[Scalar] = []
        for state in states:
            result = state_type(state.term.type) if state.kept == "sum" else requested_call.type
            columns.append(self._request(state.kept, (state.term,), over, result, node))
        return function.value(tuple(columns), requested_call.type)

    def _of_all_rows(self, requested_call: AggregateRequest, over: Over, node: exp.Expr) -> Scalar:
        """Return an aggregate that needs all rows of the frame."""
        name = requested_call.function
        if requested_call.only is not None:
            message = f"{name} with FILTER and OVER is not maintained"
            raise refuse("unsupported-query", message, node)
        if name not in OF_ALL_ROWS or over.frame.exclude != "no others":
            ordered_set = AGGREGATE_BY_NAME[name].order == "within"
            message = f"{name} OVER {'' if ordered_set else 'with EXCLUDE '}is not maintained"
            raise refuse("unsupported-function", message, node)
        return self._request(name, requested_call.arguments, over, requested_call.type, node)

    def _request(
        self,
        function: str,
        arguments: tuple[Scalar, ...],
        over: Over,
        type_: Type,
        node: exp.Expr,
        number: int | None = None,
    ) -> Column:
        frame = over.frame if WINDOW_FUNCTION_BY_NAME[function].framed else None
        order = tuple((s.scalar, s.descending, s.nulls_first) for s in over.order)
        request = WindowRequest(function, arguments, over.keys, order, frame, number, type_)
        return self.column(request, node)


def _positive(bound: Bound, name: str, node: exp.Expr) -> int | None:
    number = whole_number(bound, f"the argument of {name}", node)
    if number is not None and number <= 0:
        raise refuse("invalid-query", f"argument of {name} must be greater than zero", node)
    return number
