"""Groups that users declare: what they contain, and what a reader of them can rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from headrace.catalog.records import StreamTable
from headrace.graph import ConsistencyGroup, groups
from headrace.graph.live import LiveGraph
from headrace.graph.policy import atomic, policy, units
from headrace.settings import Settings
from tests.graph.published import World, acyclic, graphs, moments

Reads = Mapping[str, Iterable[str]]
DEFAULT, NONE = Settings(), Settings(diamond_consistency="none")
# Capitals are sources.
APART: Reads = {"x": ["S"], "y": ["T"], "z": ["T"]}
OVER: Reads = {"b": ["S"], "x": ["S"], "y": ["b"], "z": ["y"]}
declarations = st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from(["g", "h"]))


def made(reads: Reads, **options: dict[str, str]) -> dict[str, StreamTable]:
    return {
        name: StreamTable(name, "public", name, "", (), tuple(read), options=options.get(name, {}))
        for name, read in reads.items()
    }


def test_tables_with_nothing_in_common() -> None:
    found = groups(APART, {"x": "g", "y": "g"})
    assert [one.members for one in found] == [("x", "y"), ("z",)]
    assert (found[0].declared, found[0].convergences) == (("x", "y"), ())
    assert found == (
        ConsistencyGroup((("x",), ("y",)), (), ("x", "y"), ((("x",), ("y",)),)),
        ConsistencyGroup((("z",),)),
    )


def test_a_group_of_one_is_none() -> None:
    assert groups(APART, {"x": "g", "y": "h"}) == groups(APART)


def test_what_they_show_of_one_source_by_several_ways_is_in_it() -> None:
    """Otherwise x would show rows of S that b, and so y, has not."""
    (group, above) = groups(OVER, {"x": "g", "y": "g"})
    assert (group.members, group.declared) == (("b", "x", "y"), ("x", "y"))
    assert above.members == ("z",)


def test_what_stands_between_is_in_it() -> None:
    (group,) = groups({"a": ["S"], "b": ["a"], "c": ["b"]}, {"a": "g", "c": "g"})
    assert group.members == ("a", "b", "c")


def test_two_groups_that_share_a_diamond_are_one() -> None:
    reads: Reads = {"b": ["S"], "c": ["S"], "d": ["b", "c"], "x": ["T"], "y": ["U"]}
    (group,) = groups(reads, {"b": "g", "x": "g", "d": "h", "y": "h"})
    assert sorted(group.members) == sorted(reads)
    assert group.convergences == ("d",)


def test_declared_tables_stay_together_where_diamonds_do_not() -> None:
    """A diamond of b, c and d, of which c was declared to be of a group with x."""
    reads: Reads = {"b": ["S"], "c": ["S"], "d": ["b", "c"], "x": ["T"]}
    (group,) = groups(reads, {"c": "g", "x": "g"})
    tables = made(reads, c={"group": "g"}, x={"group": "g"})
    assert atomic(group, tables, DEFAULT)
    assert not atomic(group, tables, NONE)
    split = units([group], tables, NONE)
    assert [one.members for one in split] == [("b",), ("c", "x"), ("d",)]
    assert all(atomic(one, tables, NONE) for one in split)
    assert units([group], tables, DEFAULT) == (group,)


def test_any_declared_table_may_be_slowest() -> None:
    (group,) = groups({"x": ["S"], "y": ["T"]}, {"x": "g", "y": "g"})
    reads: Reads = {"x": ["S"], "y": ["T"]}
    assert policy(group, made(reads), DEFAULT) == "fastest"
    slow = made(reads, y={"diamond_schedule_policy": "slowest"})
    assert policy(group, slow, DEFAULT) == "slowest"


@given(acyclic, declarations, moments)
def test_no_source_reaches_tables_of_a_group_at_two_epochs(
    reads: Reads, declared: dict[str, str], when: list[tuple[int, bool]]
) -> None:
    found = groups(reads, declared)
    world = World(reads)
    for group in found:
        world.refresh(group.parts)
    for number, cut in when if found else ():
        world.epoch += cut
        world.refresh(found[number % len(found)].parts)
        assert not world.split()
        for name in ("g", "h"):
            epochs: dict[str, set[int]] = {}
            for table in (one for one in reads if declared.get(one) == name):
                for source, seen in world.published[table].items():
                    epochs.setdefault(source, set()).update(seen)
            assert all(len(seen) == 1 for seen in epochs.values())


@given(graphs, declarations, declarations)
def test_a_live_graph_follows_declarations(
    reads: Reads, before: dict[str, str], after: dict[str, str]
) -> None:
    live = LiveGraph()
    for declared in (before, after, {}):
        options = {name: {"group": group} for name, group in declared.items()}
        live.follow(made(reads, **options).values())
        assert set(live.groups) == set(groups(reads, declared))
        order = live.order
        assert sorted(order) == sorted(reads)
