"""Joins of many tables along keys: stars, snowflakes and chains, with equalities to spare."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzz.from_clause import From, Item, Leaf, Pair
from fuzz.generate import Generator
from fuzz.relations import Relation, Scan
from fuzz.terms import Ref, Scalar, Term

# A join has this many tables at most: on its own, and inside of other operators.
WIDE, NARROW = 12, 4
LARGE = 7


@dataclass
class Graph:
    """The relations of a join, the equalities between them, and which columns are equal by now."""

    leaves: list[Leaf] = field(default_factory=list)
    edges: list[tuple[int, int, Scalar]] = field(default_factory=list)
    equal: list[set[tuple[int, Ref]]] = field(default_factory=list)

    def join(self, one: tuple[int, Ref], other: tuple[int, Ref]) -> None:
        condition = Term("bool", "({} = {})", (one[1], other[1]), "comparison")
        self.edges.append((*sorted((one[0], other[0])), condition))  # type: ignore[arg-type]
        touched = [group for group in self.equal if one in group or other in group]
        self.equal = [group for group in self.equal if group not in touched]
        self.equal.append({one, other}.union(*touched))

    def spare(self, g: Generator) -> bool:
        """One more equality that follows from the others, if there is one."""
        groups = [group for group in self.equal if len({place for place, _ in group}) > 2]
        if not groups:
            return False
        group = sorted(g.random.choice(groups), key=lambda one: (one[0], one[1].name))
        one, other = g.random.sample(group, 2)
        if one[0] == other[0]:
            return False
        self.join(one, other)
        return True


def key_join(g: Generator, budget: int) -> Relation:
    """Tables along foreign keys; one of the relations may be any other."""
    most = NARROW if g.outer or (budget and g.chance(0.6)) else WIDE
    count = g.random.randint(3, most) if g.chance(0.7) else most
    shape = g.coverage.least(
        g.random,
        {n: g.coverage.rare(n) for n in ("star join", "snowflake join", "chain join")},
    )
    graph = Graph()
    items = {shape}
    first = g.relation("key join", budget)
    if _column(first, "id") is None:
        first = g.scan(g.random.choice(g.tables))
    _add(graph, first)
    for place in range(1, count):
        parent = {"star join": 0, "chain join": place - 1}.get(shape, g.random.randrange(place))
        # Many rows for one are rare, or a star of them would have too many.
        many = place <= 2 and g.chance(0.4)
        tables = [table for table in g.tables if table.keyed or many]
        _add(graph, g.scan(g.random.choice(tables)))
        _along(g, graph, parent, place, many=many)
    names = [leaf.relation.table for leaf in graph.leaves if isinstance(leaf.relation, Scan)]
    if len(set(names)) < len(names):
        items.add("self join")
    for _ in range(g.random.choice((0, 1, 1, 2, 3))):
        if graph.spare(g):
            items.add("redundant equalities")
    if g.chance(0.3) and _cycle(g, graph):
        items.add("cyclic equalities")
    if count >= LARGE:
        items.add("wide join")
    return _written(g, graph, items)


def _add(graph: Graph, relation: Relation) -> None:
    labels: tuple[tuple[str, str], ...] = ()
    if isinstance(relation, Scan):
        labels = tuple((ref.name, name) for name, ref in relation.fields)
    graph.leaves.append(Leaf(relation, labels))


def _along(g: Generator, graph: Graph, parent: int, child: int, *, many: bool) -> None:
    """By the child's key mostly; by that of the parent now and then."""
    whole, part = (graph.leaves[place].relation for place in (parent, child))
    ways = [("k", "id"), ("g", "id"), ("k", "id"), ("id", "id"), *([("id", "k")] if many else [])]
    own, other = g.random.choice(ways)
    one, two = _column(whole, own), _column(part, other)
    assert one is not None and two is not None
    graph.join((parent, one), (child, two))


def _cycle(g: Generator, graph: Graph) -> bool:
    """An equality between two relations that does not follow from the others."""
    one, other = sorted(g.random.sample(range(len(graph.leaves)), 2))
    names = g.random.choice((("g", "g"), ("k", "k"), ("id", "k"), ("k", "id"), ("id", "id")))
    first = _column(graph.leaves[one].relation, names[0])
    second = _column(graph.leaves[other].relation, names[1])
    if first is None or second is None:
        return False
    graph.join((one, first), (other, second))
    return True


def _column(relation: Relation, name: str) -> Ref | None:
    if isinstance(relation, Scan):
        return dict(relation.fields)[name]
    return next((ref for ref in relation.columns if ref.kind == "int"), None)


def _written(g: Generator, graph: Graph, items: set[str]) -> From:
    """All conditions in WHERE, or each at the join that has both of its sides."""
    local = [g.terms.condition(leaf.relation.columns, 1) for leaf in graph.leaves if g.chance(0.12)]
    where = tuple(condition for *_, condition in graph.edges)
    if g.chance(0.5):
        items.add("comma join")
        parts: tuple[Item, ...] = tuple(graph.leaves)
        return From(parts, _shuffled(g, (*where, *local)), "key join", tuple(sorted(items)))
    joined: Item = graph.leaves[0]
    outer = g.chance(0.4)
    for place, leaf in enumerate(graph.leaves[1:], 1):
        here = [c for _, right, c in graph.edges if right == place]
        kind = "inner join"
        if outer and g.chance(0.4):
            kind = g.random.choice(("left join", "left join", "right join", "full join"))
        items.add(kind)
        joined = Pair(kind, joined, leaf, _all(_shuffled(g, tuple(here))))
    return From((joined,), tuple(local), "key join", tuple(sorted(items)))


def _shuffled(g: Generator, conditions: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return tuple(g.random.sample(conditions, len(conditions)))


def _all(conditions: tuple[Scalar, ...]) -> Scalar:
    found = conditions[0]
    for condition in conditions[1:]:
        found = Term("bool", "({} AND {})", (found, condition), "and or not")
    return found
