"""What groups are for: refreshed when they like, no source reaches a table at two epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from headrace.graph import ConsistencyGroup, components, diamonds, groups

Reads = Mapping[str, Iterable[str]]
Seen = dict[str, set[int]]
"""For each source the epochs at which a table saw it."""
NAMES = "abcdefghij"
# Capitals are sources.
graphs = st.dictionaries(
    st.sampled_from(NAMES), st.frozensets(st.sampled_from("STU" + NAMES), max_size=4), min_size=3
)
acyclic = graphs.map(lambda reads: {n: {one for one in r if one < n} for n, r in reads.items()})
moments = st.lists(st.tuples(st.integers(0, 99), st.booleans()), max_size=25)


class World:
    """Published tables, of which only is known what they saw of each source."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.epoch = 1
        self.published: dict[str, Seen] = {}

    def refresh(self, parts: Sequence[tuple[str, ...]]) -> None:
        """Compute these in their order from sources, each other, and the rest as published."""
        new: dict[str, Seen] = {}
        for part in parts:
            outside = {one for name in part for one in self.reads[name]} - set(part)
            # What reads nothing is a source to others, as new as its latest refresh.
            seen: Seen = {} if outside else {part[0]: {self.epoch}}
            for read in outside:
                known = (self.published | new)[read] if read in self.reads else {read: {self.epoch}}
                for source, epochs in known.items():
                    seen.setdefault(source, set()).update(epochs)
            new.update(dict.fromkeys(part, seen))
        self.published |= new

    def split(self) -> set[str]:
        """Tables that a source reached at two epochs."""
        return {n for n, seen in self.published.items() if any(len(e) > 1 for e in seen.values())}


def run(reads: Reads, found: Sequence[ConsistencyGroup[str]], when: list[tuple[int, bool]]) -> None:
    world = World(reads)
    for group in found:
        world.refresh(group.parts)
    for number, cut in when if found else ():
        world.epoch += cut
        world.refresh(found[number % len(found)].parts)
        assert not world.split()


@given(acyclic, moments)
def test_no_source_reaches_a_table_at_two_epochs(
    reads: Reads, when: list[tuple[int, bool]]
) -> None:
    run(reads, groups(reads), when)


@given(graphs, moments)
def test_nor_with_tables_that_read_each_other(reads: Reads, when: list[tuple[int, bool]]) -> None:
    run(reads, groups(reads), when)


@given(acyclic)
def test_no_intermediate_can_be_left_out(reads: Reads) -> None:
    """All others follow a new cut, and the convergence sees two epochs."""
    order = [part.members for part in components(reads) if part.members[0] in reads]
    for diamond in diamonds(reads):
        for late in diamond.intermediates:
            world = World(reads)
            world.refresh(order)
            world.epoch += 1
            world.refresh([part for part in order if late not in part])
            assert diamond.convergence[0] in world.split()


IN_A_ROW = {"b": "S", "c": "S", "d": "bc", "e": "d", "f": "d", "g": "ef"}


@given(moments)
def test_diamonds_in_a_row_are_as_consistent_apart(when: list[tuple[int, bool]]) -> None:
    """They share d, which is published at one epoch and read once."""
    found = groups(IN_A_ROW)
    assert [group.members for group in found] == [("b", "c", "d"), ("e", "f", "g")]
    run(IN_A_ROW, found, when)
