"""FROM clauses in every nesting of commas, joins, LATERAL, NATURAL, USING and parentheses."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from fuzz.estimate import size
from fuzz.from_clause import From, Item, Leaf, Pair, leaves, only, plain, qualified, space
from fuzz.generate import Generator
from fuzz.relations import Filter, Relation, Scan
from fuzz.subqueries import beside
from fuzz.terms import Ref, Scalar, Term

KINDS_OF_JOIN = ("inner join", "left join", "right join", "full join", "cross join")
# Names that columns of several relations have, by kind.
COMMON = {"int": ("n", "m"), "text": ("s",), "date": ("d",), "exact": ("e",), "bigint": ("b",)}
LARGEST = 1500


def from_clause(g: Generator, budget: int) -> Relation:
    """Two to five relations in one to three items."""
    count = g.random.choice((2, 3, 3, 4, 5)) if not g.outer else 2
    cuts = sorted(g.random.sample(range(1, count), g.random.randint(0, min(2, count - 1))))
    parts: list[Item] = []
    items = {"nested from"}
    own = g.random.randrange(count)
    start = 0
    for end in (*cuts, count):
        known = tuple(ref for part in parts for ref in qualified(part))
        widths = [budget if place == own else 0 for place in range(start, end)]
        parts.append(_item(g, widths, known, items))
        start = end
    while _size(parts) > LARGEST:
        parts.pop()
    if len(parts) > 1:
        items.add("comma join")
        if any(isinstance(part, Pair) for part in parts):
            items.add("comma beside join")
        if any(isinstance(part, Pair) and _first(part).lateral for part in parts[1:]):
            items.add("lateral before join")
    where = _where(g, parts)
    return From(tuple(parts), where, "from clause", tuple(sorted(items)))


def _first(item: Item) -> Leaf:
    return next(leaves(item))


def _size(parts: list[Item]) -> float:
    return size(From(tuple(parts))) if len(parts) > 1 else 0.0


def _where(g: Generator, parts: list[Item]) -> tuple[Scalar, ...]:
    """An equality for each comma, mostly, and a condition over all now and then."""
    found: list[Scalar] = []
    for before, after in pairwise(parts):
        pair = g.terms.equality(qualified(before), qualified(after))
        if pair is not None and g.chance(0.8):
            found.append(pair)
    if g.chance(0.3):
        merged = tuple(ref for ref, _ in plain(*parts))
        every = tuple(ref for part in parts for ref in qualified(part))
        found.append(g.terms.condition((*merged, *every), 1))
    return tuple(found)


def _item(g: Generator, budgets: list[int], known: tuple[Ref, ...], items: set[str]) -> Item:
    """A tree of joins over so many relations; `known` are the columns further left."""
    if len(budgets) == 1:
        return _leaf(g, budgets[0], known, items)
    cut = g.random.randint(1, len(budgets) - 1)
    kind = g.random.choice(KINDS_OF_JOIN)
    left = _item(g, budgets[:cut], known, items)
    # What follows a RIGHT or FULL JOIN may not use a row of its left side.
    further = qualified(left) if kind not in ("right join", "full join") else ()
    right = _item(g, budgets[cut:], (*known, *further), items)
    return _joined(g, kind, left, right, items)


def _leaf(g: Generator, budget: int, known: tuple[Ref, ...], items: set[str]) -> Leaf:
    if known and g.chance(0.35):
        items.add("lateral")
        found = _few(g, beside(g, budget, known))
        return Leaf(found, _labels(g, found), lateral=True)
    if budget:
        found = g.comparable(g.relation("from clause", budget))
        return Leaf(found, _labels(g, found))
    scan = g.scan(g.random.choice(g.tables))
    if g.chance(0.3):
        return Leaf(scan, tuple((ref.name, name) for name, ref in scan.fields))
    if g.chance(0.3):
        return Leaf(scan, _labels(g, scan))
    found = _few(g, scan)
    return Leaf(found, _labels(g, found))


def _few(g: Generator, relation: Relation) -> Relation:
    """A few columns and, of a table, a few rows."""
    if isinstance(relation, Scan):
        limit = Term("bool", f"({{}} < {g.random.randint(2, 6)})", (relation.columns[0],))
        relation = Filter(relation, limit, None)
    return g.narrow(relation, 4)


def _labels(g: Generator, relation: Relation) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for ref in relation.columns:
        free = [name for name in COMMON.get(ref.kind, ()) if name not in found.values()]
        if free and g.chance(0.6):
            found[ref.name] = g.random.choice(free)
    if isinstance(relation, Scan):
        # The alias of a table names all of its columns.
        return tuple((ref.name, found.get(ref.name, ref.name)) for ref in relation.columns)
    return tuple(found.items())


def _joined(g: Generator, kind: str, left: Item, right: Item, items: set[str]) -> Item:
    parentheses = g.chance(0.35)
    alias = parentheses and g.chance(0.3) and len(only(space(left) + space(right))) > 0
    made = Pair(kind, left, right, parentheses=parentheses, alias=alias)
    items.add(kind)
    if parentheses:
        items.add("parentheses")
    if kind == "cross join":
        return made
    common = _common(left, right)
    if common is not None and g.chance(0.35) and _natural_is_small(g, common):
        items.add("natural join")
        return replace(made, natural=True, merged=_merged(g, common))
    some = [one for one in _usable(left, right) if g.chance(0.8)]
    if some and g.chance(0.4):
        items.add("using")
        return replace(made, merged=_merged(g, some))
    condition = g.terms.equality(qualified(left), qualified(right), "=", wild=True)
    if condition is None:
        return replace(made, kind="cross join")
    if kind in ("inner join", "left join", "right join") and g.chance(0.2):
        second = g.terms.condition((*qualified(left), *qualified(right)), 1)
        condition = Term("bool", "({} AND {})", (condition, second), "and or not")
    return replace(made, condition=condition)


def _natural_is_small(g: Generator, common: list[tuple[str, str]]) -> bool:
    return bool(common) or g.chance(0.1)


def _common(left: Item, right: Item) -> list[tuple[str, str]] | None:
    """The labels that NATURAL would merge, each with its kind; None where it could not."""
    both = [[label for label, _ in space(side)] for side in (left, right)]
    wanted = set(both[0]) & set(both[1])
    usable = _usable(left, right)
    return usable if {label for label, _ in usable} == wanted else None


def _usable(left: Item, right: Item) -> list[tuple[str, str]]:
    """Labels that each side has once, of a kind that can be compared."""
    one, other = dict(only(space(left))), dict(only(space(right)))
    return [
        (label, one[label].kind)
        for label in sorted(one.keys() & other.keys())
        if one[label].kind == other[label].kind in COMMON
    ]


def _merged(g: Generator, labels: list[tuple[str, str]]) -> tuple[tuple[str, Ref], ...]:
    return tuple((label, g.ref(kind)) for label, kind in labels)
