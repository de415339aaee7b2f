"""How each operator is made above a random relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuzz.estimate import LARGEST, size
from fuzz.free import free_names
from fuzz.generate import Generator
from fuzz.joins import cross_join, join
from fuzz.key_joins import key_join
from fuzz.nesting import from_clause
from fuzz.relations import (
    Aggregate,
    Distinct,
    Extend,
    Filter,
    Fit,
    Join,
    Named,
    Order,
    Recursion,
    Relation,
    Scan,
    Series,
    SetOperation,
    TopK,
)
from fuzz.subqueries import anti, lateral, mark, scalar, semi
from fuzz.terms import KINDS, Ref, Term
from fuzz.windows import suffix, window
from fuzz.with_queries import with_query


def filter_(g: Generator, budget: int) -> Relation:
    child = g.relation("filter", budget)
    columns = child.columns
    # A query may use the columns of those around it anywhere.
    if g.outer and g.chance(0.1):
        columns = (*columns, *g.outer[-1])
    having = isinstance(child, Aggregate)
    return Filter(
        child, g.terms.condition(columns, 2), "filter", ("having",) if having else ("where",)
    )


def project(g: Generator, budget: int) -> Relation:
    child = g.relation("project", budget)
    kinds = g.random.choices((*KINDS, "quotient", "rough"), k=g.random.randint(1, 3))
    added = tuple((g.ref(kind), g.terms.make(child.columns, kind)) for kind in kinds)
    return g.narrow(Extend(child, added, "project", ("projection",)), 6)


def function(g: Generator, budget: int) -> Relation:
    """A table function beside each row."""
    child = g.relation("function", budget)
    if size(child) > LARGEST / 4:
        child = g.leaf("function")
    number = g.terms.make(child.columns, "int", 0)
    other = g.terms.make(child.columns, "int", 1)
    calls = {
        Term("int", "generate_series(1, least({}, 3))", (number,), "generate_series"): 1.0,
        Term("int", "unnest(ARRAY[{}, {}])", (number, other), "unnest"): 1.0,
    }
    document = g.terms.column(child.columns, "jsons")
    if document is not None:
        text = "jsonb_array_elements_text({})"
        calls[Term("words", text, (document,), "json function")] = 2.0
    call = g.coverage.least(g.random, calls)
    ordinality = g.chance(0.3)
    columns = (g.ref(call.kind), *((g.ref("bigint"),) if ordinality else ()))
    made = Series(child, call, columns, g.chance(0.25), ordinality, "function", ("lateral",))
    if call.kind != "words":
        return made
    return Extend(made, ((g.ref("text"), Term("text", '({} COLLATE "C")', columns[:1])),), None)


def aggregate(g: Generator, budget: int) -> Relation:
    child = g.relation("aggregate", budget)
    keys = g.random.sample(grouping(child), min(len(grouping(child)), g.random.choice((1, 1, 2))))
    if not keys:
        return grouped(g, child, (), None, "global aggregate")
    return grouped(g, child, tuple(keys), None, "aggregate")


def grouping(child: Relation) -> list[Ref]:
    """Columns that can be grouped by; floats are left out, of which 0 and -0 are equal."""
    return [ref for ref in child.columns if ref.kind in KINDS and ref.kind != "float"]


def global_aggregate(g: Generator, budget: int) -> Relation:
    return grouped(g, g.relation("global aggregate", budget), (), None, "global aggregate")


def grouping_sets(g: Generator, budget: int) -> Relation:
    child = g.relation("grouping sets", budget)
    keys = grouping(child)
    if not keys:
        return grouped(g, child, (), None, "global aggregate")
    chosen = g.random.sample(keys, min(len(keys), 2))
    form = g.coverage.least(
        g.random, {name: g.coverage.rare(name) for name in ("grouping sets", "cube", "rollup")}
    )
    if len(chosen) == 2:
        sets = {
            "grouping sets": g.random.choice(
                ("GROUPING SETS (({0}, {1}), ({0}), ())", "GROUPING SETS (({0}), ({1}), ({0}))")
            ),
            "cube": "CUBE ({0}, {1})",
            "rollup": g.random.choice(("ROLLUP ({0}, {1})", "{0}, ROLLUP ({1})")),
        }[form]
    else:
        sets = {
            "grouping sets": "GROUPING SETS (({0}), ())",
            "cube": "CUBE ({0})",
            "rollup": "ROLLUP ({0})",
        }[form]
    made = grouped(g, child, tuple(chosen), sets, "grouping sets")
    assert isinstance(made, Aggregate)
    extra = Term("int", "GROUPING({})", (chosen[0],))
    calls = (*made.calls, (g.ref("int"), extra)) if g.chance(0.5) else made.calls
    return replace(made, calls=calls, items=(form, "group by"))


def grouped(
    g: Generator, child: Relation, keys: tuple[Ref, ...], sets: str | None, operator: str
) -> Relation:
    least = 0 if keys and sets is None else 1
    calls = [g.terms.aggregate(child.columns) for _ in range(g.random.randint(max(least, 1), 3))]
    items = ("group by",) if keys else ("global aggregate",)
    return Aggregate(child, keys, tuple((g.ref(c.kind), c) for c in calls), sets, operator, items)


def distinct(g: Generator, budget: int) -> Relation:
    child = g.comparable(g.relation("distinct", budget))
    kept = [ref for ref in child.columns if ref.kind != "float"]
    if len(kept) < len(child.columns) or g.chance(0.4):
        chosen = kept[: g.random.randint(1, 3)]
        outputs = tuple((ref, ref) for ref in chosen) or ((g.ref("int"), Term("int", "1")),)
        child = Fit(child, outputs)
    return Distinct(child, operator="distinct", items=("distinct",))


def distinct_on(g: Generator, budget: int) -> Relation:
    child = g.comparable(g.relation("distinct on", budget))
    columns = list(child.columns)
    g.random.shuffle(columns)
    keys = [ref for ref in columns if ref.kind != "float"][:1]
    if not keys:
        return Distinct(child, operator="distinct", items=("distinct",))
    rest = tuple(Order(ref, suffix(g)) for ref in columns if ref not in keys)
    on = tuple(Order(ref, suffix(g)) for ref in keys)
    return Distinct(child, on, rest, "distinct on", ("distinct on",))


def set_operation(operator: str) -> Callable[[Generator, int], Relation]:
    def make(g: Generator, budget: int) -> Relation:
        first = g.random.randint(0, budget)
        left, right = g.relation(operator, first), g.relation(operator, budget - first)
        kinds = [ref.kind for ref in left.columns if ref.kind in KINDS and ref.kind != "float"]
        shown = kinds[: g.random.randint(1, 3)] or ["int"]
        if operator == "union all" and g.chance(0.3):
            shown.append(g.random.choice(("float", "quotient")))
        word = operator.upper()
        if operator in ("intersect", "except"):
            # Values of few columns meet; a second copy of the rows makes counts matter.
            shown = shown[: g.random.choice((1, 1, 2))]
            word += g.random.choice(("", " ALL"))
        left, right = g.fit(left, shown), g.fit(right, shown)
        names = tuple(g.ref(kind) for kind in shown)
        return SetOperation(word, left, right, names, operator, (word.lower(),))

    return make


def recursive(g: Generator, budget: int) -> Relation:
    """Nothing in it comes from the query around it, of which a recursion cannot read a row."""
    outer, g.outer = g.outer, []
    first = g.random.randint(0, budget)
    left, right = g.relation("recursive", first), g.relation("recursive", budget - first)
    g.outer = outer
    # Ways are counted, and there are many of them.
    if size(left) > LARGEST / 8 or free_names(left):
        left = g.scan(g.random.choice(g.tables))
    if size(right) > LARGEST / 8 or free_names(right):
        right = g.scan(g.random.choice(g.tables))
    left, right = g.fit(left, ("int", "int")), g.fit(right, ("int", "int"))
    deepest = g.random.choice((1, 2)) if g.chance(0.4) else None
    names = tuple(g.ref("int") for _ in range(2 if deepest is None else 3))
    item = "recursive union" if deepest is None else "recursive union all"
    return Recursion(left, right, names, deepest, items=(item,))


def topk(g: Generator, budget: int) -> Relation:
    child = g.comparable(g.relation("topk", budget))
    columns = list(child.columns)
    g.random.shuffle(columns)
    limit = g.random.choice((1, 2, 3, 5, 8))
    if g.chance(0.3):
        # PostgreSQL takes WITH TIES over min(x) in one SELECT for ties of x, and fails.
        if not isinstance(child, Scan | Filter | Join):
            child = Named(child, "derived")
        some = tuple(Order(ref, suffix(g)) for ref in columns[:1])
        return TopK(child, some, limit, ties=True, operator="topk", items=("limit", "with ties"))
    order = tuple(Order(ref, suffix(g)) for ref in columns)
    if g.chance(0.35):
        return TopK(
            child, order, limit, g.random.choice((1, 2, 4)), g.chance(0.2), "topk",
            ("limit", "offset"),
        )  # fmt: skip
    return TopK(child, order, limit, operator="topk", items=("limit",))


MAKERS: dict[str, Callable[[Generator, int], Relation]] = {
    "filter": filter_,
    "project": project,
    "inner join": join("inner join"),
    "cross join": cross_join,
    "left join": join("left join"),
    "right join": join("right join"),
    "full join": join("full join"),
    "lateral": lateral,
    "function": function,
    "semi": semi,
    "anti": anti,
    "mark": mark,
    "scalar": scalar,
    "aggregate": aggregate,
    "global aggregate": global_aggregate,
    "grouping sets": grouping_sets,
    "distinct": distinct,
    "distinct on": distinct_on,
    "union all": set_operation("union all"),
    "union": set_operation("union"),
    "intersect": set_operation("intersect"),
    "except": set_operation("except"),
    "window": window,
    "topk": topk,
    "recursive": recursive,
    "key join": key_join,
    "from clause": from_clause,
    "with": with_query,
}
