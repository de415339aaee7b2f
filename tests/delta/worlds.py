"""Three relations before and after a random change."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st

from headrace.plan.evaluate import Bag, net

RELATIONS = ("a", "b", "c")
value = st.one_of(st.none(), st.integers(-2, 2))
row = st.tuples(value, value)
bag = st.lists(row, max_size=6).map(Counter)


@dataclass(frozen=True)
class World:
    """Each relation before and after; the change is the difference."""

    before: dict[str, Bag]
    after: dict[str, Bag]

    @property
    def changed(self) -> frozenset[str]:
        return frozenset(r for r in self.before if net(self.change(r)))

    def change(self, relation: str) -> Bag:
        change = Counter(self.after[relation])
        change.subtract(self.before[relation])
        return net(change)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    before = {relation: draw(bag) for relation in RELATIONS}
    after = {r: draw(bag) if draw(st.booleans()) else before[r] for r in RELATIONS}
    return World(before, after)
