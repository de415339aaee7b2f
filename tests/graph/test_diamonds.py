"""Diamonds and groups: the scenarios, and random graphs against a definition by listing ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from headrace.graph import ConsistencyGroup, Diamond, components, diamonds, groups

Reads = Mapping[str, Iterable[str]]
SIMPLE: Reads = {"b": ["A"], "c": ["A"], "d": ["b", "c"]}
# Capitals are sources.
NAMES = "abcdefgh"
graphs = st.dictionaries(
    st.sampled_from(NAMES), st.frozensets(st.sampled_from("ST" + NAMES), max_size=3), min_size=3
)
acyclic = graphs.map(lambda reads: {n: {one for one in r if one < n} for n, r in reads.items()})


def members(reads: Reads) -> list[tuple[str, ...]]:
    return [group.members for group in groups(reads)]


def test_a_simple_diamond() -> None:
    assert diamonds(SIMPLE) == (Diamond(("d",), ("A",), ("b", "c")),)


def test_a_diamond_with_a_longer_side() -> None:
    reads: Reads = {"b": ["A"], "c": ["A"], "e": ["b"], "d": ["e", "c"]}
    assert diamonds(reads) == (Diamond(("d",), ("A",), ("b", "c", "e")),)


def test_a_chain_has_no_diamond() -> None:
    assert diamonds({"b": ["A"], "c": ["b"]}) == ()


def test_diamonds_that_share_an_intermediate() -> None:
    reads: Reads = {"b": ["A"], "c": ["A"], "e": ["A"], "d": ["b", "c"], "f": ["c", "e"]}
    assert diamonds(reads) == (
        Diamond(("d",), ("A",), ("b", "c")),
        Diamond(("f",), ("A",), ("c", "e")),
    )
    assert groups(reads) == (
        ConsistencyGroup((("b",), ("c",), ("d",), ("e",), ("f",)), ("d", "f")),
    )


def test_different_roots_are_no_diamond() -> None:
    assert diamonds({"b": ["A"], "c": ["B"], "d": ["b", "c"]}) == ()


def test_a_source_that_is_read_directly_and_through_another() -> None:
    reads: Reads = {"b": ["A"], "d": ["A", "b"]}
    assert diamonds(reads) == (Diamond(("d",), ("A",), ("b",)),)
    assert members(reads) == [("b", "d")]


def test_the_group_of_a_simple_diamond() -> None:
    (group,) = groups(SIMPLE)
    assert group == ConsistencyGroup((("b",), ("c",), ("d",)), ("d",))
    assert not group.is_single


def test_outside_of_diamonds_every_table_is_alone() -> None:
    found = groups({"b": ["A"], "c": ["b"]})
    assert found == (ConsistencyGroup((("b",),)), ConsistencyGroup((("c",),)))
    assert all(group.is_single for group in found)


def test_a_diamond_inside_a_branch_of_another_is_merged_with_it() -> None:
    reads: Reads = {"b": ["A"], "c": ["A"], "d": ["b", "c"], "e": ["A"], "f": ["d", "e"]}
    assert groups(reads) == (
        ConsistencyGroup((("b",), ("c",), ("d",), ("e",), ("f",)), ("d", "f")),
    )


def test_diamonds_apart_are_groups_apart() -> None:
    reads: Reads = {**SIMPLE, "f": ["E"], "g": ["E"], "h": ["f", "g"]}
    assert groups(reads) == (
        ConsistencyGroup((("b",), ("c",), ("d",)), ("d",)),
        ConsistencyGroup((("f",), ("g",), ("h",)), ("h",)),
    )


def test_a_stream_table_above_all_branches_is_read_as_published() -> None:
    reads: Reads = {"a": ["S"], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    assert diamonds(reads) == (Diamond(("d",), ("a",), ("b", "c")),)
    assert members(reads) == [("a",), ("b", "c", "d")]


def test_diamonds_one_after_the_other_meet_in_a_table_that_is_read_as_published() -> None:
    reads: Reads = {**SIMPLE, "e": ["d"], "f": ["d"], "g": ["e", "f"]}
    assert members(reads) == [("b", "c", "d"), ("e", "f", "g")]


def test_a_stream_table_above_some_branches_is_in_the_group() -> None:
    reads: Reads = {"a": ["S"], "b": ["a"], "c": ["a"], "d": ["b", "c", "e"], "e": ["S"]}
    assert diamonds(reads) == (Diamond(("d",), ("S",), ("a", "b", "c", "e")),)
    other: Reads = {"a": ["S", "T"], "b": ["a"], "c": ["a"], "d": ["b", "c", "e"], "e": ["T"]}
    assert diamonds(other) == (Diamond(("d",), ("T",), ("a", "b", "c", "e")),)


def test_a_table_that_reads_no_table_is_shared_like_a_source() -> None:
    reads: Reads = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    assert members(reads) == [("a",), ("b", "c", "d")]


def test_what_stands_between_members_is_a_member() -> None:
    """Two diamonds meet in d; y reads one of that group, z reads y and is of the group by v."""
    reads: dict[str, list[str]] = {"p": ["S"], "q": ["S"], "v": ["S"], "w": ["T"], "x": ["T"]}
    reads |= {"d": ["p", "q", "w", "x"], "y": ["x"], "z": ["p", "v", "y"]}
    assert {frozenset(one.intermediates) for one in diamonds(reads)} == {
        frozenset("pqwx"),
        frozenset("pv"),
    }
    (group,) = groups(reads)
    assert set(group.members) == set(reads)
    assert group.convergences == ("d", "z")


def test_a_component_is_a_group() -> None:
    reads: Reads = {"a": ["b", "S"], "b": ["a", "S"], "c": ["c"]}
    assert groups(reads) == (ConsistencyGroup((("a", "b"),)), ConsistencyGroup((("c",),)))


def test_a_component_between_or_at_the_end_is_of_the_group() -> None:
    between: Reads = {"a": ["b", "S"], "b": ["a"], "c": ["S"], "d": ["b", "c"]}
    assert groups(between) == (ConsistencyGroup((("a", "b"), ("c",), ("d",)), ("d",)),)
    end: Reads = {"a": ["d", "c"], "c": ["S"], "d": ["a", "e"], "e": ["S"]}
    assert groups(end) == (ConsistencyGroup((("c",), ("e",), ("a", "d")), ("a", "d")),)


def test_two_members_of_a_component_are_read_as_published_together() -> None:
    reads: Reads = {"a": ["b", "S"], "b": ["a"], "d": ["a", "b"]}
    assert diamonds(reads) == ()
    assert members(reads) == [("a", "b"), ("d",)]


def test_ways_are_not_listed() -> None:
    """Here are two to the power of sixty of them."""
    reads = {"0x": ["S"], "0y": ["S"]}
    for layer in range(1, 60):
        reads |= {f"{layer}{side}": [f"{layer - 1}x", f"{layer - 1}y"] for side in "xy"}
    (group,) = groups(reads)
    assert len(group.members) == 120


def listed(reads: Reads) -> tuple[set[frozenset[str]], set[str]]:
    """Groups and convergences, by listing all ways from what reads nothing to every table."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(reads)
    graph.add_edges_from((other, name) for name, others in reads.items() for other in others)
    one = {
        name: frozenset(
            n for n in graph if nx.has_path(graph, n, name) and nx.has_path(graph, name, n)
        )
        for name in graph
    }
    parts: nx.DiGraph[frozenset[str]] = nx.DiGraph()
    parts.add_nodes_from(one.values())
    parts.add_edges_from((one[a], one[b]) for a, b in graph.edges if one[a] != one[b])
    found = [set(part) for part in parts if part & reads.keys()]
    meeting: set[str] = set()
    for root in (part for part in parts if not parts.in_degree(part)):
        for last in (part for part in parts if part != root):
            ways = list(nx.all_simple_paths(parts, root, last))
            if not ways:
                continue
            common = [part for part in ways[0][:-1] if all(part in way for way in ways)]
            inner = {part for way in ways for part in way[way.index(common[-1]) + 1 : -1]}
            if inner:
                meeting |= last
                found.append({name for part in (last, *inner) for name in part})
    return merged(graph, found), meeting


def merged(graph: nx.DiGraph[str], found: list[set[str]]) -> set[frozenset[str]]:
    """Sets with a name in common are one; so are sets each of which leads to the other."""

    def leads(one: set[str], other: set[str]) -> bool:
        return any(nx.has_path(graph, a, b) for a in one for b in other)

    def around(one: set[str]) -> list[set[str]]:
        """Other sets on a way out of this one and back."""
        return [x for x in found if not x & one and leads(one, x) and leads(x, one)]

    while True:
        for one, other in combinations(found, 2):
            if one & other:
                found.remove(other)
                one |= other
                break
        else:
            for one in found:
                # All sets are apart by now, so a way round leads through whole sets.
                if others := around(one):
                    one.update(*others)
                    found = [x for x in found if x not in others]
                    break
            else:
                return set(map(frozenset, found))


@given(acyclic)
def test_groups_of_acyclic_graphs_are_those_of_the_listed_ways(reads: Reads) -> None:
    found = groups(reads)
    meeting = {name for group in found for name in group.convergences}
    assert ({frozenset(group.members) for group in found}, meeting) == listed(reads)


@given(graphs)
def test_groups_are_those_of_the_listed_ways(reads: Reads) -> None:
    found = groups(reads)
    meeting = {name for group in found for name in group.convergences}
    assert ({frozenset(group.members) for group in found}, meeting) == listed(reads)


@given(graphs)
def test_every_table_is_in_one_group_after_all_that_it_reads(reads: Reads) -> None:
    found = groups(reads)
    order = [name for group in found for name in group.members]
    assert sorted(order) == sorted(reads)
    parts = {name: part.members for part in components(reads) for name in part.members}
    for name, others in reads.items():
        for other in set(others) & set(order) - set(parts[name]):
            assert order.index(other) < order.index(name)
    assert all(part == parts[part[0]] for group in found for part in group.parts)


@given(graphs)
def test_diamonds_are_named_by_tables_and_what_they_share(reads: Reads) -> None:
    for diamond in diamonds(reads):
        tables = {*diamond.convergence, *diamond.intermediates}
        assert tables <= reads.keys()
        assert diamond.shared
        assert tables.isdisjoint(diamond.shared)
