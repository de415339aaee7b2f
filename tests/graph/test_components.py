"""Components of names that read each other, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from headrace.graph import Component, components, find_cycle

NAMES = "abcdefg"
graphs = st.dictionaries(
    st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES), max_size=3), max_size=len(NAMES)
)


def test_no_cycles() -> None:
    found = components({"a": [], "b": ["a"], "c": ["b"]})
    assert found == (Component(("a",)), Component(("b",)), Component(("c",)))
    assert not any(one.is_cyclic for one in found)


def test_a_simple_cycle() -> None:
    (found,) = components({"a": ["b"], "b": ["a"]})
    assert found == Component(("a", "b"), 1)
    assert found.is_cyclic


def test_cycles_and_a_name_between_them() -> None:
    reads = {"a": ["b"], "b": ["a"], "c": ["b"], "d": ["c", "e"], "e": ["d"]}
    assert components(reads) == (
        Component(("a", "b"), 1),
        Component(("c",)),
        Component(("d", "e"), 2),
    )


def test_a_self_loop_is_a_cycle() -> None:
    assert components({"a": ["a"], "b": ["a"]}) == (Component(("a",), 1), Component(("b",)))


def test_the_order_is_topological_whatever_the_names() -> None:
    reads = {"a": ["y"], "z": ["y", "x"], "y": ["z"], "m": ["a", "source"]}
    found = [one.members for one in components(reads)]
    assert found == [("source",), ("x",), ("y", "z"), ("a",), ("m",)]


@given(graphs)
def test_components_are_right_and_in_order(reads: Mapping[str, Iterable[str]]) -> None:
    found = components(reads)
    place = {name: number for number, one in enumerate(found) for name in one.members}
    assert set(place) == set(reads) | {other for others in reads.values() for other in others}
    assert sum(len(one.members) for one in found) == len(place)
    graph = nx.DiGraph([(other, name) for name, others in reads.items() for other in others])
    graph.add_nodes_from(place)
    for (name, at), (other, before) in product(place.items(), repeat=2):
        together = nx.has_path(graph, name, other) and nx.has_path(graph, other, name)
        assert (at == before) == together
        assert before <= at or not graph.has_edge(other, name)
    cyclic = [one for one in found if one.is_cyclic]
    assert [one.id for one in cyclic] == list(range(1, len(cyclic) + 1))
    assert {name for one in cyclic for name in one.members} == {
        name for cycle in nx.simple_cycles(graph) for name in cycle
    }


@given(graphs)
def test_the_way_round_is_one(reads: Mapping[str, Iterable[str]]) -> None:
    found = find_cycle(reads)
    if found is None:
        assert not any(one.is_cyclic for one in components(reads))
        return
    way = found.names
    assert len(set(way)) == len(way)
    for read, reader in zip(way, (*way[1:], way[0]), strict=True):
        assert read in reads[reader]


@given(graphs)
def test_the_order_does_not_depend_on_how_names_were_given(
    reads: dict[str, frozenset[str]],
) -> None:
    turned = {name: sorted(reads[name], reverse=True) for name in sorted(reads, reverse=True)}
    assert components(turned) == components(reads)
