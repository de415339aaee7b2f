"""What groups are for: refreshed when they like, no source reaches a table at two epochs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from headrace.graph import ConsistencyGroup, components, diamonds, groups
from tests.graph.published import Reads, World, acyclic, graphs, moments


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
