"""Calls with OVER, by PostgreSQL's rules.

An aggregate becomes calls over what it is computed from, sums and extrema over the frame, and its
value an expression of these; if only all rows can tell it, a call of itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import AGGREGATE_BY_NAME, state_type
from headrace.functions.windows import OF_ALL_ROWS, WINDOW_FUNCTION_BY_NAME
from headrace.plan.operators import Frame
from headrace.query.aggregate_calls import request as aggregate_request
from headrace.query.aggregate_calls import written
from headrace.query.coerce import settled, unified
from headrace.query.constants import whole_number
from headrace.query.frames import frame_of
from headrace.query.grouping import AggregateRequest, Aggregates
from headrace.query.identifiers import name_of
from headrace.query.ids import ColumnIds
from headrace.query.literals import Bound
from headrace.query.ordering import Sorted, sorted_entry
from headrace.query.refusal import incomparable, refuse
from headrace.query.unmatched import require_exact
from headrace.query.window_names import clauses_of, named_windows
from headrace.query.window_requests import WindowRequest, WindowRequests
from headrace.types import BIGINT, DOUBLE, INTEGER, Type

if TYPE_CHECKING:
    from headrace.query.expressions import Expressions

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
        """What a call with OVER stands for, over columns that the plan will have."""
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
        """A function that only windows have."""
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
        """An aggregate over a frame, from the states that it would keep of a group."""
        parts = written(node, name, None)
        if parts.distinct or parts.order:
            clause = "DISTINCT" if parts.distinct else "ORDER BY in an aggregate"
            raise refuse("invalid-query", f"{clause} is not implemented for window functions", node)
        wanted = aggregate_request(parts, only, inside, over=True)
        function = AGGREGATE_BY_NAME[name]
        states = function.states(*(wanted.arguments or (None,)))
        if states is None:
            return self._of_all_rows(wanted, over, node)
        columns: list[Scalar] = []
        for state in states:
            result = state_type(state.term.type) if state.kept == "sum" else wanted.type
            columns.append(self._request(state.kept, (state.term,), over, result, node))
        return function.value(tuple(columns), wanted.type)

    def _of_all_rows(self, wanted: AggregateRequest, over: Over, node: exp.Expr) -> Scalar:
        """An aggregate that only the rows of the frame can tell."""
        name = wanted.function
        if wanted.only is not None:
            message = f"{name} with FILTER and OVER is not maintained"
            raise refuse("unsupported-query", message, node)
        if name not in OF_ALL_ROWS or over.frame.exclude != "no others":
            ordered_set = AGGREGATE_BY_NAME[name].order == "within"
            message = f"{name} OVER {'' if ordered_set else 'with EXCLUDE '}is not maintained"
            raise refuse("unsupported-function", message, node)
        return self._request(name, wanted.arguments, over, wanted.type, node)

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
