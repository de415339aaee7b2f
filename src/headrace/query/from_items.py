"""Parts of FROM, and how two of them are joined.

A LATERAL item, or a function, may read every item to its left, not only the one that it is joined
with. In `a, LATERAL (…) l RIGHT JOIN c` it reads `a`, which is outside of its join. So an item that
reads others is bound as a query inside of FROM's rows, and stays one, `lateral`, through every join
until the columns that it reads stand to its left:

    a × (l(a) RIGHT JOIN c)   =   Lateral(a, l(a) RIGHT JOIN c)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from headrace.functions import chain
from headrace.plan.lateral import Lateral
from headrace.plan.operators import Operator, Project
from headrace.query.from_syntax import USING_ALIAS
from headrace.query.grouping import is_quotient
from headrace.query.identifiers import name_of
from headrace.query.ids import ColumnIds
from headrace.query.joins import Kind, equal_columns, joined, merged_column
from headrace.query.refusal import located, refuse
from headrace.query.scope import FromTable, Scope, Visible, find


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
    """An item that was bound inside of the rows to its left, whether it reads them or not."""
    if any(columns_of(read) for read in outer_reads(plan)):
        return Item(plan, scope, lateral=True)
    return Item(map_outers_of_plan(plan, lambda outer: outer.scalar), scope)


def join_items(kind: Kind, left: Item, right: Item, condition: Scalar | None, scope: Scope) -> Item:
    """Both items joined, on a condition of the query that they stand in."""
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
        # What is not read of the left item is further out than that.
        second = map_outers_of_plan(second, lambda o: o if columns_of(o.scalar) & own else Outer(o))
    rows = Subquery("rows", second)
    return Item(Lateral(first, rows, condition, keep=kind == "left"), scope, lateral)


def join_using(
    kind: Kind, left: Item, right: Item, names: Sequence[str], join: exp.Join, ids: ColumnIds
) -> Item:
    """USING: equal columns appear once and first; qualified names still tell them apart."""
    both = left.scope.beside(right.scope, join)
    terms: list[Scalar] = []
    shown: list[Scalar] = []
    with located(join):
        for name in names:
            a, b = _one(name, left.scope, join), _one(name, right.scope, join)
            sides = left.scope.usable(a, join), right.scope.usable(b, join)
            terms.append(equal_columns(*sides, join))
            shown.append(merged_column(kind, *sides, join))
    shared = set(names)
    if len(shared) < len(names):
        message = "a column name appears more than once in USING"
        raise refuse("invalid-query", message, join)
    # What either side gives is a column of its own: the next join would repeat the expression.
    computed: dict[Scalar, Column] = {
        scalar: ids.computed(name, scalar.type)
        for name, scalar in zip(names, shown, strict=True)
        if kind == "full"
    }
    merged = tuple(
        Visible(name, computed.get(scalar, scalar), scalar.type.sql)
        for name, scalar in zip(names, shown, strict=True)
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
    """The columns of a NATURAL JOIN, in the left side's order; without any, all rows match."""
    names = {column.name for column in right.columns}
    return [column.name for column in left.columns if column.name in names]


def _one(name: str, scope: Scope, join: exp.Join) -> Visible:
    found = find(name, scope.columns)
    if not found:
        raise refuse("unknown-column", f'column "{name}" of USING does not exist', join)
    if len(found) > 1:
        raise refuse("ambiguous-column", f'common column "{name}" is ambiguous', join)
    return found[0]
