"""What a run has tried: items of SQL, and operators directly above operators.

Whoever chooses asks for weights: what occurred least is chosen most.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from fuzz.inside import children, scalars
from fuzz.relations import Again, Named, Relation
from fuzz.shapes import SHAPES, shapes_of
from fuzz.terms import Query, Term, queries_of, walk

ITEMS = (
    "projection", "arithmetic", "case", "coalesce", "cast", "string", "date and time", "like",
    "comparison", "in list", "between", "is null", "and or not", "where",
    "inner join", "cross join", "comma join", "left join", "right join", "full join",
    "natural join", "using", "self join", "non-equi join",
    "group by", "global aggregate", "count", "sum", "avg", "min max", "variance", "regression",
    "bool_and bool_or", "string_agg", "array_agg", "percentile", "mode", "filter clause",
    "distinct aggregate", "aggregate expression", "having", "grouping sets", "cube", "rollup",
    "distinct", "distinct on", "union", "union all", "intersect", "intersect all", "except",
    "except all", "exists", "not exists", "in", "not in", "any", "all", "row in",
    "under or", "under not", "under case", "in select", "scalar in select", "scalar in where",
    "scalar in having", "correlated", "derived table", "cte", "cte twice", "view", "values",
    "lateral", "unnest", "generate_series", "json function",
    "ranking window", "offset window", "aggregate window", "rows frame", "range frame",
    "groups frame", "frame exclusion", "several partitionings", "limit", "offset", "with ties",
    "recursive union", "recursive union all", "stream over stream",
    *SHAPES,
)  # fmt: skip

LEAVES = ("scan", "values", "function")
OPERATORS = (
    "filter", "project", "inner join", "cross join", "left join", "right join", "full join",
    "lateral", "function", "semi", "anti", "mark", "scalar", "aggregate", "global aggregate",
    "grouping sets", "distinct", "distinct on", "union all", "union", "intersect", "except",
    "window", "topk", "recursive", "key join", "from clause", "with",
)  # fmt: skip
PAIRS = frozenset((above, below) for above in OPERATORS for below in {*OPERATORS, *LEAVES})

Choice = TypeVar("Choice")


@dataclass
class Coverage:
    """Counts of what the views of a run contain."""

    items: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, relation: Relation) -> None:
        self.items.update(items_of(relation))
        self.pairs.update(pairs_of(relation))

    def least(self, random: Random, choices: dict[Choice, float]) -> Choice:
        """One of the choices by their weights."""
        return random.choices(list(choices), list(choices.values()))[0]

    def rare(self, item: str | None) -> float:
        """The weight of an item: less the more often it occurred."""
        return 1.0 if item is None else 1.0 / (1 + self.items[item]) ** 0.5

    def rare_pair(self, above: str, below: str) -> float:
        return 1.0 / (1 + self.pairs[above, below]) ** 2

    @property
    def pairs_covered(self) -> float:
        return len(PAIRS & self.pairs.keys()) / len(PAIRS)

    @property
    def items_missing(self) -> tuple[str, ...]:
        return tuple(item for item in ITEMS if not self.items[item])


def pairs_of(relation: Relation) -> Counter[tuple[str, str]]:
    """Each operator with those directly below it, inner queries of its expressions among them."""
    found: Counter[tuple[str, str]] = Counter()

    def tops(one: Relation) -> list[str]:
        if one.operator is not None:
            return [one.operator]
        return [name for child in children(one) for name in tops(child)]

    def visit(one: Relation) -> None:
        inner = [query.relation for scalar in scalars(one) for query in queries_of(scalar)]
        for below in (*children(one), *inner):
            if one.operator is not None:
                found.update((one.operator, name) for name in tops(below))
            visit(below)

    visit(relation)
    return found


def items_of(relation: Relation) -> Counter[str]:
    """The items of a view that its expressions and operators name, each once."""
    found: set[str] = set()

    def visit(one: Relation) -> None:
        found.update(one.items)
        if isinstance(one, Named):
            found.add(FORMS[one.form])
        if isinstance(one, Again) and one.child.form.endswith("cte"):
            found.add("cte twice")
        for scalar in scalars(one):
            for part in walk(scalar):
                if isinstance(part, Term) and part.item is not None:
                    found.add(part.item)
                if isinstance(part, Query):
                    visit(part.relation)
        for child in children(one):
            visit(child)

    visit(relation)
    return Counter(found | shapes_of(relation))


FORMS = {
    "derived": "derived table",
    "cte": "cte",
    "nested cte": "cte",
    "view": "view",
    "stream": "stream over stream",
}
