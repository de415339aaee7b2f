"""Random graphs of tables, and the epochs of the sources that published tables have seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hypothesis import strategies as st

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
