"""Joins of two random relations: by a condition, by USING, by NATURAL, by none."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.estimate import LARGEST, size
from fuzz.generate import Generator
from fuzz.relations import Join, Relation, Scan
from fuzz.terms import Ref, Term


def join(operator: str) -> Callable[[Generator, int], Relation]:
    def make(g: Generator, budget: int) -> Relation:
        left, right = two(g, operator, budget)
        items: tuple[str, ...] = (operator,)
        if isinstance(left, Scan) and isinstance(right, Scan) and left.table == right.table:
            items += ("self join",)
        kinds = {ref.kind for ref in left.columns} & {ref.kind for ref in right.columns}
        if kinds & {"int", "text", "date", "bigint"} and g.chance(0.25):
            return merged(g, operator, left, right, items)
        sign = "=" if operator == "full join" or g.chance(0.75) else g.random.choice(("<", ">="))
        condition = g.terms.equality(left.columns, right.columns, sign, wild=True)
        if condition is None:
            condition = Term("bool", "true")
        elif g.chance(0.25):
            both = (*left.columns, *right.columns)
            second = (
                g.terms.equality(left.columns, right.columns)
                if operator == "full join"
                else g.terms.condition(both, 1)
            )
            if second is not None:
                condition = Term("bool", "({} AND {})", (condition, second), "and or not")
        kind = operator
        if operator == "inner join" and g.chance(0.4):
            kind, items = "comma", (*items, "comma join")
        return Join(kind, left, right, condition, operator=operator, items=items)

    return make


def merged(
    g: Generator, operator: str, left: Relation, right: Relation, items: tuple[str, ...]
) -> Relation:
    """USING or NATURAL."""
    names: list[tuple[Ref, Ref, Ref]] = []
    for _ in range(g.random.choice((1, 1, 2))):
        pair = g.terms.equality(
            [ref for ref in left.columns if all(ref != one for _, one, _ in names)],
            [ref for ref in right.columns if all(ref != two for _, _, two in names)],
        )
        if pair is None or pair.parts[0].kind in ("bool", "char"):  # type: ignore[union-attr]
            continue
        one, two_ = pair.parts
        assert isinstance(one, Ref) and isinstance(two_, Ref)
        if one not in left.columns:
            one, two_ = two_, one
        names.append((g.ref(one.kind), one, two_))
    if not names:
        condition = g.terms.equality(left.columns, right.columns) or Term("bool", "true")
        return Join(operator, left, right, condition, operator=operator, items=items)
    natural = g.chance(0.5)
    items += ("natural join" if natural else "using",)
    return Join(operator, left, right, None, tuple(names), natural, operator=operator, items=items)


def two(g: Generator, operator: str, budget: int) -> tuple[Relation, Relation]:
    """Two relations whose pairs are not too many."""
    first = g.random.randint(0, budget)
    left = g.relation(operator, first)
    right = g.relation(operator, budget - first)
    if isinstance(left, Scan) and g.chance(0.1):
        right = g.scan(next(table for table in g.tables if table.name == left.table))
    if size(left) * size(right) > LARGEST:
        if size(left) > size(right):
            left = g.leaf(operator)
        else:
            right = g.leaf(operator)
    if size(left) * size(right) > LARGEST:
        left = right = g.leaf(operator)
        right = g.leaf(operator)
    return left, right


def cross_join(g: Generator, budget: int) -> Relation:
    left, right = two(g, "cross join", budget)
    return Join("cross join", left, right, operator="cross join", items=("cross join",))
