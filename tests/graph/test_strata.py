"""Strata: the lowest that respect every edge, and components that have none."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.graph import Unstratifiable, components, strata, unstratifiable

NOT: tuple[str, ...] = ("NOT EXISTS",)
NAMES = "abcdef"
graphs = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([(), NOT]), max_size=3),
    max_size=len(NAMES),
)
Reads = Mapping[str, Mapping[str, tuple[str, ...]]]


def test_a_linear_chain_of_monotone_edges_is_one_stratum() -> None:
    reads: Reads = {"a": {"source": ()}, "b": {"a": ()}, "c": {"b": ()}}
    assert strata(reads) == {"source": 0, "a": 0, "b": 0, "c": 0}


def test_a_non_monotone_edge_begins_a_stratum() -> None:
    assert strata({"b": {"a": ()}, "c": {"b": NOT}}) == {"a": 0, "b": 0, "c": 1}
    assert strata({"a": {"source": NOT}}) == {"source": 0, "a": 1}


def test_a_diamond_with_mixed_edges() -> None:
    reads: Reads = {"b": {"a": ()}, "c": {"a": NOT}, "d": {"b": (), "c": ()}}
    assert strata(reads) == {"a": 0, "b": 0, "c": 1, "d": 1}


def test_a_non_monotone_cycle_is_unstratifiable() -> None:
    reads: Reads = {"b": {"a": NOT}, "a": {"b": ()}}
    assert unstratifiable(reads) == (Unstratifiable("b", "a", NOT, ("b", "a")),)


def test_a_table_that_is_not_monotone_in_itself_is_unstratifiable() -> None:
    assert unstratifiable({"a": {"a": NOT}}) == (Unstratifiable("a", "a", NOT, ("a",)),)


def test_the_whole_cycle_is_reported() -> None:
    reads: Reads = {"a": {"d": ()}, "b": {"a": (), "x": NOT}, "c": {"b": ()}, "d": {"c": NOT}}
    (found,) = unstratifiable(reads)
    assert (found.reader, found.read) == ("d", "c")
    assert found.path == ("d", "a", "b", "c")


def test_a_monotone_cycle_is_one_stratum() -> None:
    reads: Reads = {"a": {"b": ()}, "b": {"a": ()}}
    assert strata(reads) == {"a": 0, "b": 0}
    assert unstratifiable(reads) == ()


def test_a_cycle_stands_above_what_its_members_negate_outside() -> None:
    reads: Reads = {"a": {"b": (), "edges": ()}, "b": {"a": (), "blocked": NOT}, "c": {"a": ()}}
    found = strata(reads)
    assert (found["a"], found["b"], found["c"]) == (1, 1, 1)
    assert unstratifiable(reads) == ()


@given(graphs)
def test_strata_respect_every_edge_and_are_the_lowest(reads: Reads) -> None:
    """As found by raising names from 0 as long as an edge asks for it."""
    assume(not unstratifiable(reads))
    edges = [(name, other, bool(words)) for name in reads for other, words in reads[name].items()]
    raised = dict.fromkeys((one for name, other, _ in edges for one in (name, other)), 0)
    raised |= dict.fromkeys(reads, 0)
    while any(raised[name] < raised[other] + up for name, other, up in edges):
        for name, other, up in edges:
            raised[name] = max(raised[name], raised[other] + up)
    assert strata(reads) == raised


@given(graphs)
def test_what_is_unstratifiable_is_a_way_round_with_a_non_monotone_edge(reads: Reads) -> None:
    together = {name: one.members for one in components(reads) for name in one.members}
    inside = {
        (reader, read)
        for reader, others in reads.items()
        for read, operators in others.items()
        if operators and read in together[reader]
    }
    found = unstratifiable(reads)
    assert {(one.reader, one.read) for one in found} == inside
    for one in found:
        assert one.operators == NOT
        assert (one.path[0], one.path[-1]) == (one.reader, one.read)
        for read, reader in zip(one.path, (*one.path[1:], one.reader), strict=True):
            assert read in reads[reader]
