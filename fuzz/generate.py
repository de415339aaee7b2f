"""Random views: operators above operators, those first that stood there least."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random

from fuzz.coverage import OPERATORS, Coverage
from fuzz.estimate import size
from fuzz.expressions import Expressions
from fuzz.free import free_names
from fuzz.inside import children, scalars
from fuzz.relations import Again, Fit, Named, Relation, Scan, Series, Values
from fuzz.schema import Table
from fuzz.terms import KINDS, SHOWN_ONLY, Ref, Scalar, Term, queries_of

WIDEST = 6


def reads_table(relation: Relation) -> bool:
    inner = (query.relation for s in scalars(relation) for query in queries_of(s))
    return isinstance(relation, Scan) or any(
        reads_table(one) for one in (*children(relation), *inner)
    )


class Generator:
    """The state of making one view after the other."""

    def __init__(
        self,
        random: Random,
        coverage: Coverage,
        tables: tuple[Table, ...],
        makers: Mapping[str, Callable[[Generator, int], Relation]],
    ) -> None:
        self.random = random
        self.coverage = coverage
        self.tables = tables
        self.makers = makers
        self.terms = Expressions(random, coverage)
        self.numbers = count(1)
        self.shared: list[Named] = []
        self.outer: list[tuple[Ref, ...]] = []

    def view(self, first: str | None = None) -> Relation:
        """The tree of a new view, with the operator `first` at its top if there is one."""
        self.numbers = count(1)
        self.shared = []
        self.outer = []
        budget = self.random.choice((2, 3, 3, 4, 4, 5, 6))
        if first is not None:
            found = self.narrow(self.makers[first](self, budget - 2), WIDEST)
        else:
            found = self.narrow(self.relation(None, budget), WIDEST)
        # A view that reads no table has nothing to follow.
        return found if reads_table(found) else self.view(first)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def ref(self, kind: str) -> Ref:
        return Ref(f"a{next(self.numbers)}", kind)

    def relation(self, above: str | None, budget: int) -> Relation:
        """A relation to stand below the operator `above`."""
        if budget <= 0:
            return self.leaf(above)
        counts = self.coverage.pairs
        weights = {
            name: self.coverage.rare_pair(above, name)
            if above is not None
            else 1.0 / (1 + sum(n for (parent, _), n in counts.items() if parent == name)) ** 0.7
            for name in OPERATORS
        }
        chosen = self.coverage.least(self.random, weights)
        made = self.makers[chosen](self, budget - 1)
        return self.named(self.narrow(made, WIDEST + 1), same=chosen == above)

    def leaf(self, above: str | None) -> Relation:
        """A table, mostly; or rows out of nothing."""
        if self.shared and self.chance(0.4):
            named = self.random.choice(self.shared)
            return Again(
                named, tuple((ref.name, self.ref(ref.kind)) for ref in named.child.columns)
            )
        weights = {
            name: weight * (1 if above is None else self.coverage.rare_pair(above, name) ** 0.3)
            for name, weight in (("scan", 1.0), ("values", 0.06), ("function", 0.06))
        }
        match self.coverage.least(self.random, weights):
            case "scan":
                return self.scan(self.random.choice(self.tables))
            case "values":
                return self.values()
            case _:
                return self.function()

    def scan(self, table: Table) -> Scan:
        return Scan(table.name, tuple((c.name, self.ref(c.kind)) for c in table.columns))

    def values(self) -> Values:
        kinds = ("int", *self.random.choices(KINDS, k=2))
        rows = tuple(
            tuple(self.terms.leaf((), kind) for kind in kinds)
            for _ in range(self.random.randint(1, 4))
        )
        return Values(tuple(self.ref(kind) for kind in kinds), rows, items=("values",))

    def function(self) -> Series:
        call = self.random.choice(
            (
                Term("int", "generate_series(1, 5)", (), "generate_series"),
                Term("int", "generate_series(6, 0, -2)", (), "generate_series"),
                Term("int", "unnest(ARRAY[1, 2, 2, NULL])", (), "unnest"),
            )
        )
        ordinality = self.chance(0.3)
        columns = (self.ref("int"), *((self.ref("bigint"),) if ordinality else ()))
        return Series(None, call, columns, ordinality=ordinality)

    def named(self, relation: Relation, *, same: bool) -> Relation:
        """The relation in a form of its own, now and then; always where it would be merged."""
        if not same and not self.chance(0.3):
            return relation
        rare = self.coverage.items
        forms = {
            "derived": 2.0,
            "cte": 1.5 / (1 + rare["cte"]) ** 0.3,
            "view": 1.0 / (1 + rare["view"]) ** 0.3,
            "stream": 0.6 / (1 + rare["stream over stream"]) ** 0.3,
        }
        if free_names(relation) or self.outer:
            forms = {"derived": 1.0}
        if not reads_table(relation):
            forms.pop("stream", None)
        form = self.coverage.least(self.random, forms)
        if form in ("view", "stream"):
            relation = self.narrow(relation, WIDEST)
        named = Named(relation, form)
        if form != "derived" and size(relation) < 30:
            self.shared.append(named)
        return named

    def comparable(self, relation: Relation) -> Relation:
        """Without the columns that are only shown."""
        return self.narrow(relation, WIDEST, exact=True)

    def narrow(self, relation: Relation, most: int, *, exact: bool = False) -> Relation:
        """At most so many of the relation's columns, of as many kinds as possible."""
        columns = [ref for ref in relation.columns if not exact or ref.kind not in SHOWN_ONLY]
        if len(columns) == len(relation.columns) <= most:
            return relation
        if not columns:
            return Fit(relation, ((self.ref("int"), Term("int", "1")),))
        self.random.shuffle(columns)
        seen: set[str] = set()
        first = [ref for ref in columns if ref.kind not in seen and not seen.add(ref.kind)]  # type: ignore[func-returns-value]
        rest = [ref for ref in columns if ref not in first]
        kept = (first + rest)[: self.random.randint(min(3, most), most)]
        return Fit(relation, tuple((ref, ref) for ref in kept))

    def fit(self, relation: Relation, kinds: Sequence[str]) -> Relation:
        """The relation with columns of these kinds, each a column or an expression of its own."""
        outputs: list[tuple[Ref, Scalar]] = []
        for kind in kinds:
            column = self.terms.column(relation.columns, kind)
            plain = column is not None and self.chance(0.8)
            scalar = column if plain else self.terms.make(relation.columns, kind, 1)
            assert scalar is not None
            outputs.append((self.ref(kind), scalar))
        return Fit(relation, tuple(outputs))
