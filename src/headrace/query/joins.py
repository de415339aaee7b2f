"""Parts of FROM, and the joins between them.

A RIGHT JOIN is a LEFT JOIN with its sides exchanged: the scope decides the names and the order of
its columns.

A LATERAL item, or a function, may read every item to its left, not only the item that it is joined
with. In `a, LATERAL (…) l RIGHT JOIN c` it reads `a`, which is outside of its join. So an item that
reads others is bound as a query inside of FROM's rows, and stays a query, `lateral`, through every
join until the columns that it reads stand to its left:

    a × (l(a) RIGHT JOIN c)   =   Lateral(a, l(a) RIGHT JOIN c)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from sqlglot import exp

from headrace.algebra.scalar import (
    Column,
    Outer,
    Scalar,
    Subquery,
    columns_of,
    map_outers,
    map_outers_of_plan,
    outer_reads,
)
from headrace.functions import call, cast, chain
from headrace.functions.numbers import as_numeric, undeclared
from headrace.plan.operators import FullJoin, Join, Operator, OuterSemiAntiJoin, Project
from headrace.plan.surface_operators import Lateral
from headrace.query.coerce import as_type, common_to, compared, lossless_together
from headrace.query.dialect import USING_ALIAS
from headrace.query.grouping import is_quotient
from headrace.query.identifiers import ColumnIds, name_of
from headrace.query.refusal import located, refuse, require_exact
from headrace.query.scope import FromTable, Scope, Visible, find

Kind = OneOf["inner", "left", "right", "full"]


def join_kind(join: exp.Join) -> Kind:
    """Return the kind of a join: which rows it keeps, whatever CROSS or NATURAL make it compare."""
    side, kind, method = (join.args.get(name) for name in ("side", "kind", "method"))
    match side:
        case None if kind != "OUTER":
            return "inner"
        case "LEFT" if kind in (None, "OUTER"):
            return "left"
        case "RIGHT" if kind in (None, "OUTER"):
            return "right"
        case "FULL" if kind in (None, "OUTER"):
            return "full"
    name = " ".join(part for part in (method, side, kind, "JOIN") if part)
    raise refuse("syntax-error", f"{name} is not a join", join)


def joined(kind: Kind, left: Operator, right: Operator, condition: Scalar | None) -> Operator:
    """Return the rows of a join; its columns are those of both sides, in no order of their own."""
    match kind:
        case "inner":
            return Join(left, right, condition)
        case "left":
            return OuterSemiAntiJoin(left, right, "left", condition)
        case "right":
            return OuterSemiAntiJoin(right, left, "left", condition)
        case "full":
            return FullJoin(left, right, condition)


def equal_columns(left: Scalar, right: Scalar, join: exp.Join) -> Scalar:
    """Return the comparison that USING makes of two columns."""
    for side in (left, right):
        require_exact(side.type, "JOIN/USING", join)
    return call("=", *compared(left, right))


def merged_column(kind: Kind, left: Scalar, right: Scalar, join: exp.Join) -> Scalar:
    """Return the one column that USING makes of two.

    The result is the column of the side that is never padded, else of either. Both are brought to
    one type; an inner join shows the one that has it.
    """
    if kind != "full" and not lossless_together((left, right)):
        # One side alone is shown; beside other digits PostgreSQL shows a numeric without any.
        shown_side = right if kind == "right" else left
        return cast(shown_side, undeclared(as_numeric(shown_side.type)))
    common = common_to((left, right), "JOIN/USING", join)
    first, second = as_type(left, common), as_type(right, common)
    match kind:
        case "left":
            return first
        case "right":
            return second
        case "full":
            return call("coalesce", first, second)
        case "inner":
            return second if first != left and second == right else first


@dataclass(frozen=True)
class Item:
    """A part of FROM: its rows and what they are called.

    The plan of a `lateral` item reads columns of items to its left through `Outer`, and what stands
    around the whole query through one more.
    """

    plan: Operator
    scope: Scope
    lateral: bool = False


def lateral_item(plan: Operator, scope: Scope) -> Item:
    """Return an item bound inside of the rows to its left, whether it reads them or not."""
    if any(columns_of(read) for read in outer_reads(plan)):
        return Item(plan, scope, lateral=True)
    return Item(map_outers_of_plan(plan, lambda outer: outer.scalar), scope)


def join_items(kind: Kind, left: Item, right: Item, condition: Scalar | None, scope: Scope) -> Item:
    """Return both items joined, on a condition of the query that they stand in."""
    reads = [read for read in outer_reads(right.plan) if columns_of(read)] if right.lateral else []
    own = frozenset(left.plan.columns) if reads else frozenset()
    here = any(columns_of(read) & own for read in reads)
    lateral = left.lateral or any(columns_of(read) - own for read in reads)
    first, second = left.plan, right.plan
    if lateral:
        first = first if left.lateral else map_outers_of_plan(first, Outer)
        condition = None if condition is None else map_outers(condition, Outer)
    if not here:
        if lateral and not right.lateral:
            second = map_outers_of_plan(second, Outer)
        return Item(joined(kind, first, second, condition), scope, lateral)
    assert kind in ("inner", "left")
    if lateral:
        # Columns that are not the left item's are further out than that item.
        second = map_outers_of_plan(second, lambda o: o if columns_of(o.scalar) & own else Outer(o))
    rows = Subquery("rows", second)
    return Item(Lateral(first, rows, condition, keep=kind == "left"), scope, lateral)


def join_using(
    kind: Kind, left: Item, right: Item, names: Sequence[str], join: exp.Join, ids: ColumnIds
) -> Item:
    """Return both items joined by USING.

    Equal columns appear once and first; qualified names still distinguish them.
    """
    both = left.scope.beside(right.scope, join)
    terms: list[Scalar] = []
    merged_scalars: list[Scalar] = []
    with located(join):
        for name in names:
            a, b = _one(name, left.scope, join), _one(name, right.scope, join)
            sides = left.scope.usable(a, join), right.scope.usable(b, join)
            terms.append(equal_columns(*sides, join))
            merged_scalars.append(merged_column(kind, *sides, join))
    shared = set(names)
    if len(shared) < len(names):
        message = "a column name appears more than once in USING"
        raise refuse("invalid-query", message, join)
    # What either side gives is a column of its own: the next join would repeat the expression.
    computed: dict[Scalar, Column] = {
        scalar: ids.computed(name, scalar.type)
        for name, scalar in zip(names, merged_scalars, strict=True)
        if kind == "full"
    }
    merged = tuple(
        Visible(name, computed.get(scalar, scalar), scalar.type.sql)
        for name, scalar in zip(names, merged_scalars, strict=True)
    )
    rest = tuple(
        column
        for scope in (left.scope, right.scope)
        for column in scope.columns
        if column.name not in shared
    )
    quotients = both.quotients | {c for s, c in computed.items() if is_quotient(s, both.quotients)}
    scope = replace(both, columns=(*merged, *rest), quotients=quotients)
    alias = join.args.get(USING_ALIAS)
    if alias is not None:
        source = FromTable(name_of(alias), None, merged)
        scope = replace(scope.beside(Scope.of(source), alias), columns=scope.columns)
    item = join_items(kind, left, right, chain("and", terms) if terms else None, scope)
    if not computed:
        return item
    own = ((column, column) for column in item.plan.columns)
    outputs = (*own, *((column, scalar) for scalar, column in computed.items()))
    return replace(item, plan=Project(item.plan, outputs))


def shared_names(left: Scope, right: Scope) -> list[str]:
    """Return the columns of a NATURAL JOIN, in the left side's order.

    Without any, all rows match.
    """
    names = {column.name for column in right.columns}
    return [column.name for column in left.columns if column.name in names]


def _one(name: str, scope: Scope, join: exp.Join) -> Visible:
    matching_columns = find(name, scope.columns)
    if not matching_columns:
        raise refuse("unknown-column", f'column "{name}" of USING does not exist', join)
    if len(matching_columns) > 1:
        raise refuse("ambiguous-column", f'common column "{name}" is ambiguous', join)
    return matching_columns[0]
