"""Random expressions of a kind over given columns."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fuzz.coverage import Coverage
from fuzz.kinds import literal
from fuzz.rules import AGGREGATES, RULES, Rule
from fuzz.terms import DOCUMENTS, Ref, Scalar, Term, refs_of

BY_KIND: dict[str, tuple[Rule, ...]] = {}
for _rule in RULES:
    BY_KIND[_rule.kind] = (*BY_KIND.get(_rule.kind, ()), _rule)


class Expressions:
    """Expressions that PostgreSQL never fails on: small numbers, guarded divisions."""

    def __init__(self, random: Random, coverage: Coverage) -> None:
        self.random = random
        self.coverage = coverage
        self.shadowed = False

    def column(self, columns: Sequence[Ref], kind: str) -> Ref | None:
        found = [ref for ref in columns if ref.kind == kind]
        return self.random.choice(found) if found else None

    def leaf(self, columns: Sequence[Ref], kind: str) -> Scalar:
        column = self.column(columns, kind)
        if column is not None and (kind in DOCUMENTS or self.random.random() < 0.85):
            return column
        return Term(kind, literal(self.random, kind))

    def make(self, columns: Sequence[Ref], kind: str, depth: int = 2) -> Scalar:
        """An expression of that kind."""
        column = self.column(columns, kind)
        if kind in DOCUMENTS or (depth == 0 and kind not in ("bool", "quotient", "rough")):
            return self.leaf(columns, kind)
        if column is not None and self.random.random() < 0.35:
            return column
        if depth <= 0 and kind == "bool":
            rules = [r for r in BY_KIND["bool"] if "bool" not in r.parts]
        elif depth <= 0:
            rules = [r for r in BY_KIND[kind] if kind not in r.parts]
        else:
            rules = list(BY_KIND[kind])
        return self.apply(self.pick(rules, columns), columns, depth)

    def apply(self, rule: Rule, columns: Sequence[Ref], depth: int) -> Term:
        parts = tuple(self.make(columns, part, max(depth - 1, 0)) for part in rule.parts)
        return Term(rule.kind, rule.text, parts, rule.item)

    def pick(self, rules: Sequence[Rule], columns: Sequence[Ref]) -> Rule:
        """A rule that occurred less than others, and rather one that columns can feed."""
        kinds = {ref.kind for ref in columns}
        rules = [rule for rule in rules if DOCUMENTS.intersection(rule.parts) <= kinds]
        weights = [
            rule.weight
            * self.coverage.rare(rule.item)
            * (1.0 if not rule.parts or kinds & set(rule.parts) else 0.03)
            * (20.0 if self.shadowed and rule.parts in SHADOWED else 1.0)
            for rule in rules
        ]
        return self.random.choices(rules, weights)[0]

    def condition(self, columns: Sequence[Ref], depth: int = 1) -> Scalar:
        """A condition that uses at least one of the columns, if that can be found."""
        for _ in range(4):
            found = self.make(columns, "bool", depth)
            if refs_of(found):
                break
        return found

    def equality(
        self, left: Sequence[Ref], right: Sequence[Ref], sign: str = "=", *, wild: bool = False
    ) -> Term | None:
        """A comparison of a column of each side, None where no kind is common.

        A wild one may compare numbers of different kinds, and expressions of one column each.
        """
        if wild and self.random.random() < 0.35:
            found = self.computed_equality(left, right, sign)
            if found is not None:
                return found
        common = sorted({ref.kind for ref in left} & {ref.kind for ref in right} & COMPARABLE)
        if not common:
            return None
        weights = [6.0 if kind == "int" else 1.0 for kind in common]
        kind = self.random.choices(common, weights)[0]
        one, other = self.column(left, kind), self.column(right, kind)
        assert one is not None and other is not None
        pair = (one, other) if self.random.random() < 0.5 else (other, one)
        item = "comparison" if sign == "=" else "non-equi join"
        return Term("bool", f"({{}} {sign} {{}})", pair, item)

    def computed_equality(
        self, left: Sequence[Ref], right: Sequence[Ref], sign: str
    ) -> Term | None:
        ones = [ref for ref in left if ref.kind in KEYS_OF]
        others = [ref for ref in right if ref.kind in KEYS_OF]
        pairs = [
            (one, other)
            for one in ones
            for other in others
            if one.kind == other.kind or {one.kind, other.kind} <= NUMBERS
        ]
        if not pairs:
            return None
        one, other = self.random.choice(pairs)
        sides: list[Scalar] = [one, other]
        for place in self.random.choice(((0,), (1,), (0, 1), ())):
            ref = (one, other)[place]
            sides[place] = Term(ref.kind, self.random.choice(KEYS_OF[ref.kind]), (ref,))
        if one.kind != other.kind and self.random.random() < 0.3:
            sides[0] = Term("numeric", "({})::numeric(18,2)", (sides[0],))
        if self.random.random() < 0.5:
            sides.reverse()
        changed = any(isinstance(side, Term) for side in sides)
        item = "expression key" if changed else "mixed numbers" if sign == "=" else "non-equi join"
        return Term("bool", f"({{}} {sign} {{}})", tuple(sides), item)

    def aggregate(self, columns: Sequence[Ref]) -> Term:
        """A call of an aggregate, sometimes over some rows only."""
        call = self.apply(self.pick(AGGREGATES, columns), columns, self.random.choice((0, 0, 1)))
        simple = call.text.count("(") == 1 and call.text.endswith(")")
        if simple and self.random.random() < 0.2:
            parts = (call, self.condition(columns))
            return Term(call.kind, "{} FILTER (WHERE {})", parts, "filter clause")
        return call


COMPARABLE = frozenset(
    ("int", "bigint", "numeric", "exact", "text", "char", "date", "timestamp", "bool")
)
# The kinds of arguments of functions and operators whose names the user may have taken.
SHADOWED = (("text",), ("text", "text"), ("numeric", "int"), ("int", "numeric"))
NUMBERS = frozenset(("int", "bigint", "numeric", "exact"))
# What may stand in the place of a column that a join compares.
KEYS_OF: dict[str, tuple[str, ...]] = {
    "int": ("({} - 1)", "({} + 2)", "abs({})", "({} * 2)", "({} % 3)", "coalesce({}, 0)"),
    "bigint": ("({} + 1)", "({})::int", "({} - 2)"),
    "numeric": ("({} + 0.75)", "round({}, 1)", "({})::numeric(14,4)"),
    "exact": ("round({}, 2)", "({} - 1)", "({} + 0.005)", "({})::numeric(20,2)"),
    "text": ("lower({})", "upper({})", "({} || 'b')", "substring({} FROM 1 FOR 1)", "trim({})"),
    "date": ("({} + 7)", "({} - 14)", "date_trunc('month', {}::timestamp)::date"),
    "timestamp": ("date_trunc('day', {})", "({} + INTERVAL '1 day')"),
}
