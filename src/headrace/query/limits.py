"""ORDER BY with LIMIT, OFFSET, FETCH or DISTINCT ON: the first rows of a query, or of each key.

Project (the shown columns) over Top (LIMIT) over Top (DISTINCT ON) over the rows with sort columns
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.plan.keys import Keys, smallest_key
from headrace.plan.operators import Filter, Operator, Project, SortKey, Top
from headrace.query.block import Block
from headrace.query.coerce import whole_number
from headrace.query.literals import Bound
from headrace.query.ordering import distinct_on, output_place, require_sortable, ties_by
from headrace.query.refusal import refuse
from headrace.query.schema import order_by_value
from headrace.types import BOOLEAN

Bind = Callable[[exp.Expr], Bound]


@dataclass(frozen=True)
class Limit:
    """The number of rows taken, after `offset` others; `count` None takes all."""

    count: int | None
    offset: int
    with_ties: bool


@dataclass(frozen=True)
class OrderEntry:
    """An entry of ORDER BY: the place of an output, its direction, where NULLs go."""

    place: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Ordering:
    """The order and number of a query's rows, over the places of its outputs.

    `on` are the outputs of DISTINCT ON; None without it.
    """

    entries: tuple[OrderEntry, ...] = ()
    limit: Limit | None = None
    on: tuple[int, ...] | None = None

    def applied(self, plan: Operator, shown: int, query: exp.Expr, keys: Keys) -> Operator:
        """Return the rows that are taken of a plan, of which the first `shown` columns are shown.

        `keys` of relations can say that there is at most one row, which needs no order.
        """
        columns = plan.columns
        order = self._sorted(columns)
        if self.on is not None:
            on = tuple(dict.fromkeys(columns[place] for place in self.on))
            rest = tuple(key for key in order if key.column not in on)
            ties = ties_by(columns[:shown], (*on, *(key.column for key in rest)))
            plan = Top(plan, on, rest, ties, limit=1)
        limit = self.limit
        if limit is not None and not self.entries and limit.count != 0:
            self._require_order(plan, query, keys)
        if limit is not None and limit.count == 0:
            plan = Filter(plan, Literal(False, BOOLEAN))
        elif limit is not None and (limit.offset or not _is_one_row(plan, {})):
            ties = ties_by(columns[:shown], (key.column for key in order))
            if limit.with_ties and not limit.offset:
                ties = ()
            plan = Top(plan, (), order, ties, limit.count, limit.offset, limit.with_ties)
        if shown == len(columns):
            return plan
        return Project(plan, tuple((column, column) for column in columns[:shown]))

    def _require_order(self, plan: Operator, query: exp.Expr, keys: Keys) -> None:
        limit, offset = query.args.get("limit"), query.args.get("offset")
        if not _is_one_row(plan, keys):
            word = "LIMIT" if limit is not None else "OFFSET"
            hint = "Which rows it takes would be left to chance: say the order with ORDER BY"
            order_by_value(word, limit or offset or query, hint)

    def _sorted(self, columns: Sequence[Column]) -> tuple[SortKey, ...]:
        order: dict[Column, SortKey] = {}
        for entry in self.entries:
            column = columns[entry.place]
            order.setdefault(column, SortKey(column, entry.descending, entry.nulls_first))
        return tuple(order.values())


def _is_one_row(plan: Operator, keys: Keys) -> bool:
    """Return whether there is at most one row."""
    return smallest_key(plan, keys) == ()


def limit_of(query: exp.Expr, bind: Bind) -> Limit | None:
    """Return LIMIT, OFFSET and FETCH of a query; None if they leave all rows."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    count: int | None = None
    with_ties = False
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        with_ties = options is not None and bool(options.args.get("with_ties"))
        written = limit.args.get("count")
        count = 1 if written is None else _number(written, "LIMIT", bind)
    elif limit is not None and not _is_all(limit.expression):
        count = _number(limit.expression, "LIMIT", bind)
    skipped = None if offset is None else _number(offset.expression, "OFFSET", bind)
    if count is None and not skipped:
        return None
    if count == 0:
        return Limit(0, 0, False)
    if query.args.get("order") is None and with_ties:
        message = "WITH TIES cannot be specified without ORDER BY clause"
        raise refuse("invalid-query", message, limit or query)
    return Limit(count, skipped or 0, with_ties and count is not None)


def _is_all(node: exp.Expr) -> bool:
    return isinstance(node, exp.Var) and node.name.upper() == "ALL"


def _number(node: exp.Expr, clause: str, bind: Bind) -> int | None:
    number = whole_number(bind(node), clause, node)
    if number is not None and number < 0:
        raise refuse("invalid-query", f"{clause} must not be negative", node)
    return number


class Outputs:
    """The outputs of a query, to which ORDER BY adds those that only it reads."""

    def __init__(
        self, names: Sequence[str], scalars: Sequence[Scalar], bind: Callable[[exp.Expr], Scalar]
    ) -> None:
        self._names = tuple(names)
        self.scalars = list(scalars)
        self._bind = bind
        self.hidden: list[tuple[Scalar, exp.Expr]] = []

    def place(self, node: exp.Expr) -> int:
        """Return the output that an entry means by its number, its name, or as an expression."""
        output = output_place(node, self._names, lambda a, b: self.scalars[a] == self.scalars[b])
        if output is not None:
            return output
        scalar = self._bind(node)
        if scalar in self.scalars:
            return self.scalars.index(scalar)
        self.scalars.append(scalar)
        self.hidden.append((scalar, node))
        return len(self.scalars) - 1

    def entries(self, query: exp.Expr) -> tuple[OrderEntry, ...]:
        order = query.args.get("order")
        entries: list[OrderEntry] = []
        for node in () if order is None else order.expressions:
            place = self.place(node.this)
            require_sortable(self.scalars[place], "ORDER BY", node.this)
            descending, nulls_first = (bool(node.args.get(n)) for n in ("desc", "nulls_first"))
            entries.append(OrderEntry(place, descending, nulls_first))
        return tuple(entries)


def ordering_of(query: exp.Expr, outputs: Outputs, bind: Bind) -> Ordering:
    """Return the order and number of a query's rows.

    An order that takes no part in it is not read.
    """
    limit = limit_of(query, bind)
    on = distinct_on(query)
    if on is None:
        return Ordering(outputs.entries(query) if limit is not None else (), limit)
    nodes = on.expressions if isinstance(on, exp.Tuple) else [on]
    places = tuple(outputs.place(node) for node in nodes)
    entries = outputs.entries(query)
    _require_prefix(entries, places, on)
    return Ordering(entries, limit, places)


def _require_prefix(entries: Sequence[OrderEntry], on: Sequence[int], node: exp.Expr) -> None:
    """Refuse an ORDER BY that does not start with the expressions of DISTINCT ON, in any order."""
    remaining_places = set(on)
    for entry in entries:
        if not remaining_places:
            return
        if entry.place not in on:
            message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
            raise refuse("invalid-query", message, node)
        remaining_places.discard(entry.place)


def limited(query: exp.Expr, block: Block, bind: Bind, keys: Keys) -> Block:
    """Return the first rows of a set operation, whose order can name its columns only."""

    def refuse_expression(node: exp.Expr) -> Scalar:
        message = "ORDER BY of a set operation takes names or numbers of its columns only"
        raise refuse("invalid-query", message, node, "Put the set operation into FROM.")

    columns = block.plan.columns
    outputs = Outputs(block.names, columns, refuse_expression)
    ordering = ordering_of(query, outputs, bind)
    return replace(block, plan=ordering.applied(block.plan, len(columns), query, keys))


def without_parentheses(node: exp.Subquery) -> exp.Expr:
    """Return the query in parentheses, with what is written behind them as its own."""
    query: exp.Expr = node.this
    written = {name: node.args[name] for name in _BEHIND if node.args.get(name) is not None}
    if not written:
        return query
    query = query.copy()
    for name, value in written.items():
        if query.args.get(name) is not None:
            message = f"multiple {_BEHIND[name]} clauses not allowed"
            raise refuse("invalid-query", message, node)
        query.set(name, value.copy())
    return query


_BEHIND = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}
