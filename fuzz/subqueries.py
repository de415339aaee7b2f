"""Queries inside of queries: existence, membership, comparison, values, lateral joins."""

from __future__ import annotations

from dataclasses import replace

from fuzz.estimate import LARGEST, size
from fuzz.generate import Generator
from fuzz.relations import Aggregate, Extend, Filter, Fit, Join, Order, Relation, TopK
from fuzz.terms import KINDS, Query, Ref, Scalar, Term

COMPARED = frozenset(("int", "bigint", "numeric", "exact", "text", "date"))


def query_of(relation: Relation, names: tuple[Ref, ...] | None = None) -> Query:
    shown = relation.columns if names is None else names
    return Query(relation, tuple(ref.name for ref in shown))


def inner(g: Generator, operator: str, budget: int, outer: tuple[Ref, ...]) -> Relation:
    """A relation for a query inside one whose columns are `outer`."""
    g.outer.append(outer)
    found = g.relation(operator, budget)
    g.outer.pop()
    return found


def correlated(g: Generator, relation: Relation, outer: tuple[Ref, ...]) -> Relation:
    """Only the rows that fit to the row outside."""
    sign = "=" if g.chance(0.75) else g.random.choice(("<", ">=", "<>"))
    condition = g.terms.equality(relation.columns, outer, sign, wild=True)
    if condition is None:
        return relation
    if condition.item == "comparison":
        condition = replace(condition, item="correlated")
    if g.chance(0.12):
        second = g.terms.equality(relation.columns, outer, g.random.choice(("<>", "<", ">")))
        if second is not None:
            condition = Term("bool", "({} AND {})", (condition, second), "correlated")
    return Filter(relation, condition, None)


def split(g: Generator, operator: str, budget: int) -> tuple[Relation, int]:
    """The outer relation, and what is left for the inner one."""
    first = g.random.randint(0, budget)
    child = g.relation(operator, first)
    if size(child) > LARGEST / 4:
        child = g.leaf(operator)
    return child, budget - first


def exists(g: Generator, operator: str, budget: int, outer: tuple[Ref, ...]) -> Query:
    found = inner(g, operator, budget, outer)
    return query_of(correlated(g, found, outer) if g.chance(0.85) else found)


def member(
    g: Generator, operator: str, budget: int, outer: tuple[Ref, ...], width: int = 1
) -> tuple[tuple[Scalar, ...], Query] | None:
    """Expressions outside, and a query of as many columns of their kinds."""
    found = inner(g, operator, budget, outer)
    common = {r.kind for r in outer} & {r.kind for r in found.columns} & COMPARED
    kinds = g.random.choices(sorted(common) or ["int"], k=width)
    shown = g.fit(correlated(g, found, outer) if g.chance(0.3) else found, kinds)
    left = tuple(g.terms.leaf(outer, kind) for kind in kinds)
    return left, query_of(shown)


def semi(g: Generator, budget: int) -> Relation:
    child, left = split(g, "semi", budget)
    form = g.coverage.least(
        g.random, {name: g.coverage.rare(name) for name in ("exists", "in", "any", "row in")}
    )
    condition = _asked(g, "semi", form, left, child.columns)
    return Filter(child, condition, "semi", (form,))


def anti(g: Generator, budget: int) -> Relation:
    child, left = split(g, "anti", budget)
    form = g.coverage.least(
        g.random, {name: g.coverage.rare(name) for name in ("not exists", "not in", "not row in")}
    )
    condition = _asked(g, "anti", form, left, child.columns)
    return Filter(child, condition, "anti", ("not in" if form == "not row in" else form,))


def _asked(g: Generator, operator: str, form: str, budget: int, outer: tuple[Ref, ...]) -> Term:
    """A condition that asks a query."""
    if form in ("exists", "not exists"):
        query = exists(g, operator, budget, outer)
        return Term("bool", f"{form.upper()} ({{}})", (query,), form)
    width = 2 if "row" in form else 1
    found = member(g, operator, budget, outer, width)
    assert found is not None
    left, query = found
    text = {
        "in": "({} IN ({}))",
        "not in": "({} NOT IN ({}))",
        "any": "({} = ANY ({}))",
        "row in": "(({}, {}) IN ({}))",
        "not row in": "(({}, {}) NOT IN ({}))",
        "some any": f"({{}} {g.random.choice(('<', '>=', '<>'))} ANY ({{}}))",
        "all": f"({{}} {g.random.choice(('<=', '>', '<>', '='))} ALL ({{}}))",
    }[form]
    item = {"row in": "row in", "not row in": "row in", "some any": "any"}.get(form, form)
    return Term("bool", text, (*left, query), item)


def mark(g: Generator, budget: int) -> Relation:
    """A question to a query whose answer is a value: under OR, NOT, CASE, or shown."""
    child, left = split(g, "mark", budget)
    columns = child.columns
    form = g.coverage.least(
        g.random,
        {n: g.coverage.rare(n) for n in ("exists", "in", "not in", "some any", "all", "row in")},
    )
    asked = _asked(g, "mark", form, left, columns)
    place = g.coverage.least(
        g.random,
        {n: g.coverage.rare(n) for n in ("under or", "under not", "under case", "in select")},
    )
    match place:
        case "in select":
            return Extend(child, ((g.ref("bool"), asked),), "mark", (place,))
        case "under or":
            text, parts = "({} OR {})", (asked, g.terms.condition(columns, 1))
        case "under not":
            text, parts = "(NOT ({} AND {}))", (asked, g.terms.condition(columns, 1))
        case _:
            text = "CASE WHEN {} THEN {} ELSE {} END"
            parts = (asked, g.terms.condition(columns, 0), g.terms.condition(columns, 0))
    return Filter(child, Term("bool", text, parts, place), "mark", (place,))


def scalar(g: Generator, budget: int) -> Relation:
    """A query of one value: shown, compared in WHERE, or compared in HAVING."""
    child, left = split(g, "scalar", budget)
    if g.chance(0.25):
        return figures(g, child, left)
    if g.chance(0.3 * g.coverage.rare("scalar in having")):
        child = g.makers["aggregate"](g, 0)
    query = value(g, left, child.columns)
    kind = query.kind
    used = Term(kind, "({})", query.parts)
    comparable = kind in COMPARED
    if comparable and g.chance(0.5):
        place = "scalar in having" if isinstance(child, Aggregate) else "scalar in where"
        other = g.terms.leaf(child.columns, kind)
        text = f"({{}} {g.random.choice(('<', '>=', '=', '<>'))} {{}})"
        return Filter(child, Term("bool", text, (other, used), place), "scalar", (place,))
    added = ((g.ref(kind), used),)
    return Extend(child, added, "scalar", ("scalar in select",))


def figures(g: Generator, child: Relation, budget: int) -> Relation:
    """Several aggregates over one relation, each of the rows that its own condition takes."""
    source = inner(g, "scalar", budget, child.columns)
    if g.chance(0.3):
        source = correlated(g, source, child.columns)
    call = g.terms.aggregate(source.columns)
    asked: list[Term] = []
    for _ in range(g.random.randint(2, 4)):
        chosen = Filter(source, g.terms.condition(source.columns, 1), None)
        made = Aggregate(chosen, (), ((g.ref(call.kind), call),), None, "global aggregate")
        asked.append(Term(call.kind, "({})", (query_of(made),)))
        if g.chance(0.5):
            call = g.terms.aggregate(source.columns)
    added = tuple((g.ref(one.kind), one) for one in asked)
    if asked[0].kind == asked[1].kind and g.chance(0.5):
        text = "CASE WHEN EXISTS ({}) THEN {} ELSE {} END"
        rows = Filter(source, g.terms.condition(source.columns, 1), None)
        case = Term(asked[0].kind, text, (query_of(rows), asked[0], asked[1]), "case")
        added = ((g.ref(case.kind), case), *added[2:])
    return Extend(child, added, "scalar", ("scalar in select", "figures of one relation"))


def value(g: Generator, budget: int, outer: tuple[Ref, ...]) -> Term:
    """A query of exactly one column and at most one row."""
    found = inner(g, "scalar", budget, outer)
    if g.chance(0.75):
        found = correlated(g, found, outer)
    if g.chance(0.8):
        call = g.terms.aggregate(found.columns)
        ref = g.ref(call.kind)
        made: Relation = Aggregate(found, (), ((ref, call),), None, "global aggregate")
        return Term(call.kind, "{}", (query_of(made),))
    kind = g.random.choice(sorted({r.kind for r in found.columns} & set(KINDS)) or ["int"])
    shown = g.fit(found, [kind])
    made = TopK(shown, tuple(Order(ref) for ref in shown.columns), 1, operator="topk")
    return Term(kind, "{}", (query_of(made),))


def lateral(g: Generator, budget: int) -> Relation:
    """A query beside each row that may use the row."""
    left, rest = split(g, "lateral", budget)
    found = beside(g, rest, left.columns)
    kind = g.random.choice(("cross join", "left join", "inner join"))
    condition = None if kind == "cross join" else Term("bool", "true")
    return Join(kind, left, found, condition, lateral=True, operator="lateral", items=("lateral",))


def beside(g: Generator, budget: int, left: tuple[Ref, ...]) -> Relation:
    """What LATERAL stands before, for a row of these columns."""
    found = correlated(g, inner(g, "lateral", budget, left), left)
    chance = g.random.random()
    if chance < 0.35:
        call = g.terms.aggregate(found.columns)
        found = Aggregate(found, (), ((g.ref(call.kind), call),), None, None)
    elif chance < 0.7:
        found = g.comparable(found)
        order = tuple(Order(ref) for ref in found.columns)
        found = TopK(found, order, g.random.choice((1, 2)), operator=None)
    elif chance < 0.85 and found.columns:
        found = Fit(found, tuple((ref, ref) for ref in found.columns[:3]))
    return found
