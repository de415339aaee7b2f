"""The graph that follows changes is the graph made from scratch, and looks at few tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headrace.catalog.records import StreamTable
from headrace.graph import components, groups, strata
from headrace.graph.live import LiveGraph

Edges = Mapping[str, tuple[str, ...]]
NAMES = "abcdefgh"
# Capitals are sources.
edges = st.dictionaries(
    st.sampled_from("STU" + NAMES), st.sampled_from([(), ("NOT EXISTS",)]), max_size=3
)
changes = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.none() | edges, min_size=1, max_size=4), max_size=6
)


def table(relation: str, reads: Edges) -> StreamTable:
    return StreamTable(relation, "public", relation, "", (), tuple(reads), edges=reads)


def assert_is(live: LiveGraph, reads: Mapping[str, Edges]) -> None:
    """The live graph is that of these tables, and has the order that it would have at once."""
    assert {one.members for one in live.components} == {
        one.members for one in components(reads) if one.members[0] in reads
    }
    assert {one.members for one in live.components if one.is_cyclic} == {
        one.members for one in components(reads) if one.is_cyclic
    }
    assert live.strata == {name: level for name, level in strata(reads).items() if name in reads}
    assert set(live.groups) == set(groups(reads))
    assert len(live.groups) == len(set(live.groups))
    order = live.order
    assert sorted(order) == sorted(reads)
    for name in order:
        for read in reads[name].keys() & reads.keys() - set(live.place(name).component):
            assert order.index(read) < order.index(name)
    for read in {one for others in reads.values() for one in others}:
        assert live.readers(read) == {name for name in reads if read in reads[name]}
    numbers = [one.id for one in live.components if one.is_cyclic]
    assert numbers == list(range(1, len(numbers) + 1))


@given(changes)
def test_one_change_after_the_other(batches: list[dict[str, Edges | None]]) -> None:
    live = LiveGraph()
    reads: dict[str, Edges] = {}
    for batch in batches:
        for name, read in batch.items():
            if read is not None:
                reads[name] = read
                live.put(name, read, read)
            elif name in reads:
                del reads[name]
                live.remove(name)
            assert_is(live, reads)


@given(changes)
def test_any_number_of_changes_between_two_looks(batches: list[dict[str, Edges | None]]) -> None:
    live = LiveGraph()
    reads: dict[str, Edges] = {}
    for batch in batches:
        reads = {n: r for n, r in {**reads, **batch}.items() if r is not None}
        tables = [table(name, read) for name, read in reads.items()]
        live.follow(tables)
        assert_is(live, reads)
        assert live.follow(tables) == 0
        fresh = LiveGraph()
        fresh.follow(reversed(tables))
        assert (live.groups, live.order) == (fresh.groups, fresh.order)


def test_what_does_not_change_the_graph_is_not_looked_at() -> None:
    live = LiveGraph()
    one = table("a", {"S": ()})
    assert live.follow([one]) == 1
    assert live.follow([replace(one, name="renamed", epoch=7)]) == 0
    assert live.follow([replace(one, edges={})]) == 1
    assert live.strata == {"a": 1}
    assert live.follow([]) == 0
    assert live.order == ()


def test_a_table_that_is_still_read_becomes_a_source_and_comes_back() -> None:
    live = LiveGraph()
    live.put("b", ["a"], {"a": ()})
    live.put("a", ["S"], {"S": ("aggregate",)})
    assert (live.order, live.strata["b"]) == (("a", "b"), 1)
    assert live.remove("a") == 1
    assert (live.order, live.strata["b"]) == (("b",), 0)
    assert live.put("a", ["b"], {"b": ()}) == 2
    assert [one.members for one in live.components] == [("a", "b")]


FAMILIES = 100


def thousand() -> LiveGraph:
    """Families of ten: a diamond over a source and a chain over a stream table that all read."""
    tables = [table("hub", {"orders": ("aggregate",)})]
    for number in range(FAMILIES):
        f = f"f{number:02}"
        tables += [
            table(f"{f}a", {"orders": ()}),
            table(f"{f}b", {"orders": ()}),
            table(f"{f}c", {f"{f}a": (), f"{f}b": ()}),
            table(f"{f}d", {"hub": ()}),
            *(table(f + later, {f + early: ()}) for early, later in pairwise("defghij")),
        ]
    live = LiveGraph()
    assert live.follow(tables) == len(tables) == 1001 == len(live.order)
    return live


def test_of_a_thousand_tables_one_more_looks_at_few() -> None:
    live = thousand()
    assert live.put("new_over_the_source", ["orders"], {}) == 1
    assert live.put("new_over_the_hub", ["hub"], {}) == 2
    # The diamond it is in now, whole: its two sides and where they meet.
    assert live.put("new_side", ["f42a", "orders"], {}) == 4
    assert live.place("new_side").group.members == ("f42a", "f42b", "f42c", "new_side")
    # The end of a chain over the hub.
    assert live.put("new_end", ["f42j"], {}) == 9
    assert live.remove("new_side") == 3
    assert live.place("f42c").group.convergences == ("f42c",)
    assert live.remove("new_end") == 8
    # Two families become one group; the others stay as they are.
    assert live.put("new_join", ["f10c", "f11c"], {}) == 7
    assert len(live.place("new_join").group.members) == 7
    assert live.remove("new_join") == 6
    assert len(live.groups) == len(live.order) - 2 * FAMILIES


def test_of_a_thousand_tables_one_that_all_rest_on_looks_at_those() -> None:
    live = thousand()
    assert live.put("hub", ["orders"], {}) == 1 + 7 * FAMILIES


def test_what_reads_a_group_that_grows_comes_after_it() -> None:
    """`c` makes `m` and `n` a group, which now reads `p`; `a` reads `m`."""
    live = LiveGraph()
    reads: dict[str, Edges] = {
        "p": {"T": ()},
        "n": {"S": (), "p": ()},
        "m": {"S": ()},
        "a": {"m": ()},
        "c": {"m": (), "n": ()},
    }
    for name, read in reads.items():
        live.put(name, read, read)
    assert_is(live, reads)


def test_what_reads_a_declared_group_comes_after_it() -> None:
    live = LiveGraph()
    reads: dict[str, Edges] = {"p": {"T": ()}, "n": {"p": ()}, "m": {"S": ()}, "a": {"m": ()}}
    for name, read in reads.items():
        live.put(name, read, read)
    live.put("m", reads["m"], reads["m"], "desk")
    live.put("n", reads["n"], reads["n"], "desk")
    assert [set(group.members) for group in live.groups] == [{"p"}, {"m", "n"}, {"a"}]
