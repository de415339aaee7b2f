"""ORDER BY: where it may be written, what it may sort by, and how PostgreSQL reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headrace.algebra.scalar import Column, Scalar
from headrace.plan.operators import Operator, SortKey, Top, Window
from headrace.query.identifiers import name_of
from headrace.query.refusal import incomparable, refuse

ORDERING: dict[type[exp.Expr], frozenset[str]] = {
    # `this` is the last argument of an aggregate call that the order stands behind.
    exp.Order: frozenset({"this", "expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows", "with_ties"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
}


def order_counts(query: exp.Expr) -> bool:
    """Return whether the order of the query's rows decides which rows it has."""
    return distinct_on(query) is not None or any(
        query.args.get(name) is not None for name in ("limit", "offset")
    )


def distinct_on(query: exp.Expr) -> exp.Expr | None:
    """Return the expressions of DISTINCT ON; None without it."""
    distinct = query.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    assert on is None or isinstance(on, exp.Expr)
    return on


def is_read(node: exp.Expr) -> bool:
    """Return whether the binder reads the node: all but an order that decides nothing."""
    query = node.parent
    if node.arg_key != "order" or not isinstance(query, exp.Query):
        return True
    # Clauses that are written behind parentheses belong to the query inside.
    around = query.parent
    if isinstance(around, exp.Subquery) and around.this is query and order_counts(around):
        return True
    while isinstance(around, exp.Subquery):
        around = around.parent
    return order_counts(query) or is_array_of_query(around)


def is_array_of_query(node: exp.Expr | None) -> bool:
    """Return whether the node is `ARRAY(SELECT …)`, whose elements have the query's order."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "array":
        return False
    return len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query)


TIES_NOTICE = (
    "Where ORDER BY leaves rows equal, and it matters which comes first, they are taken in the"
    " order of their columns, NULLs last and text by its bytes; explain shows them after `ties by`."
)


@dataclass(frozen=True)
class Sorted:
    """One entry of ORDER BY."""

    scalar: Scalar
    descending: bool
    nulls_first: bool
    node: exp.Expr


def sorted_entry(entry: exp.Expr, bind: Callable[[exp.Expr], Scalar], clause: str) -> Sorted:
    """Return the entry with its direction, if both engines sort its type alike."""
    assert isinstance(entry, exp.Ordered)
    scalar = bind(entry.this)
    require_sortable(scalar, clause, entry.this)
    descending = bool(entry.args.get("desc"))
    return Sorted(scalar, descending, bool(entry.args.get("nulls_first")), entry.this)


def require_sortable(scalar: Scalar, clause: str, node: exp.Expr) -> None:
    """Refuse to sort by a type that the engines do not sort alike."""
    if scalar.type.comparison == "ordered":
        return
    if scalar.type.is_text and not scalar.type.keeps_blanks:
        raise refuse(
            "collation-unsupported",
            f"{clause} on text needs collation C",
            node,
            'Write COLLATE "C" after the text, or declare the column so.',
        )
    raise incomparable(clause, scalar.type, node)


def output_place(
    node: exp.Expr, names: Sequence[str], same: Callable[[int, int], bool]
) -> int | None:
    """Return the output column that an entry of ORDER BY means by its number or name, else None.

    `same` says whether two outputs are the same expression, so that their name is not ambiguous.
    """
    if isinstance(node, exp.Literal):
        if node.is_string or not node.name.isdigit():
            raise refuse("invalid-query", "non-integer constant in ORDER BY", node)
        if not 1 <= int(node.name) <= len(names):
            message = f"ORDER BY position {node.name} is not in select list"
            raise refuse("invalid-query", message, node)
        return int(node.name) - 1
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return None
    if isinstance(node.this, exp.Star):
        return None
    places = [i for i, name in enumerate(names) if name == name_of(node.this)]
    if any(not same(places[0], place) for place in places[1:]):
        message = f'ORDER BY "{name_of(node.this)}" is ambiguous'
        raise refuse("ambiguous-column", message, node)
    return places[0] if places else None


def ties_by(columns: Iterable[Column], decided: Iterable[Column]) -> tuple[SortKey, ...]:
    """Return the columns that decide between rows equal in those that did before."""
    decided_columns = frozenset(decided)
    return tuple(
        SortKey(column) for column in dict.fromkeys(columns) if column not in decided_columns
    )


def breaks_ties(plan: Operator) -> bool:
    """Return whether some order of the plan is made total by further columns."""
    match plan:
        case Window(calls=calls) if any(call.ties for call in calls):
            return True
        case Top(ties=ties, order=order, keys=keys) if ties and (order or keys):
            return True
    return any(breaks_ties(child) for child in plan.children)
