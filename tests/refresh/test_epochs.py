"""Which epoch a refresh is of, and what it records of its inputs."""

from __future__ import annotations

from dataclasses import replace

from headrace.catalog import State
from headrace.catalog.records import DatabaseRecord, Relation, Source, StreamTable
from headrace.refresh.epochs import (
    frontier,
    is_used_up,
    lacks,
    may_move,
    newest_cut,
    newest_known,
)
from headrace.store import Pin


def table(name: str, epoch: int, **frontier_: int) -> StreamTable:
    return StreamTable(
        name, "public", name, "", (), tuple(frontier_), frontier=frontier_, epoch=epoch
    )


def state(cut: int, *tables: StreamTable, **pins: int) -> State:
    """A source s with a change at every cut, and tables whose rows changed when published, or as
    `pins` says."""
    changed = {"s": cut, **{one.relation: one.epoch for one in tables}, **pins}
    return State.of(
        [DatabaseRecord(1, "home", "", 0, epoch=cut)],
        [Relation(name, (), (), Pin(0, epoch)) for name, epoch in changed.items()],
        [Source("s", 1, 1, "public", "s", (), (), "")],
        tables,
        {},
    )


def test_a_refresh_is_of_the_newest_cut() -> None:
    a, b = table("a", 4, s=4), table("b", 3, a=3)
    known = state(5, a, b)
    assert newest_cut(known) == newest_known(known, (a,)) == newest_known(known, (b,)) == 5
    assert not is_used_up(known, (a,), 5)


def test_an_epoch_is_used_up_by_a_table_that_is_there() -> None:
    a, b = table("a", 5, s=4), table("b", 5, a=4)
    assert is_used_up(state(5, a, b), (b,), 5)
    assert not is_used_up(state(6, a, b), (a, b), 6)


def test_a_refresh_is_of_no_older_epoch_than_what_it_reads() -> None:
    """The epoch of a number of its own that an input took after the newest cut."""
    a, b, c = table("a", 7, s=5), table("b", 5, a=5), table("c", 5, s=5)
    known = state(5, a, b, c)
    assert newest_known(known, (b,)) == 7
    assert not is_used_up(known, (b,), 7)
    assert newest_known(known, (c,)) == 5
    assert newest_known(known, (a, b)) == 7
    assert is_used_up(known, (a, b), 7)


def test_inputs_are_taken_in_as_published_and_members_up_to_the_epoch() -> None:
    a, b = table("a", 4, s=4), table("b", 3, a=3, s=3)
    known = state(6, a, b)
    assert frontier(known, b, 9, {}) == {"a": 4, "s": 6}
    assert frontier(known, b, 9, {"a": None}) == {"a": 9, "s": 6}


def test_what_lacks_nothing_does_not_move_unless_what_it_reads_does() -> None:
    a, b, c = table("a", 4, s=4), table("b", 4, a=4), table("c", 4, b=4)
    assert may_move(state(4, a, b, c), (a, b, c)) == ()
    moved = state(5, a, b, c)
    assert (lacks(moved, a), lacks(moved, b)) == (frozenset({"s"}), frozenset())
    assert may_move(moved, (a, b, c)) == (a, b, c)
    assert may_move(moved, (b, c)) == ()
    # Published again with the same rows, an input is no reason to move.
    again = table("a", 5, s=5)
    assert may_move(state(5, again, b, c, a=4), (again, b, c)) == ()


def test_what_only_moved_operator_state_is_no_change_to_readers() -> None:
    a, b = table("a", 5, s=5), table("b", 4, a=4)
    known = state(5, a, b)
    assert lacks(known, b) == {"a"}
    unseen = known.with_relations([replace(known.relation("a"), shown_epoch=4)])
    assert unseen.relation("a").pin.epoch == 5
    assert (lacks(unseen, b), may_move(unseen, (a, b))) == (frozenset(), ())
    # The next change is again one from where the reader stands.
    seen = known.with_relations([replace(known.relation("a"), pin=Pin(0, 6))])
    assert lacks(seen, b) == {"a"}
