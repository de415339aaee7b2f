"""A goal is reached step by step, and what comes later does not move it."""

from __future__ import annotations

from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.schedule.goal import Goal
from tests.observe.states import state_of, table


def behind(goal: Goal, state: State, name: str = "b") -> list[str]:
    waited = state.stream_table("public", name)
    assert waited is not None
    return [one.name for one in goal.lacking(state, waited)]


def chain(s: int, a: int, b: int, *, taken: tuple[int, int]) -> State:
    """s → a → b with logs up to these epochs; a and b have `taken` in what they read."""
    return state_of(
        {"s": s, "a": a, "b": b}, table("a", {"s": taken[0]}, a), table("b", {"a": taken[1]}, b)
    )


def test_step_by_step() -> None:
    goal = Goal({"s": 5})
    assert behind(goal, chain(5, 3, 3, taken=(3, 3))) == ["a", "b"]
    assert behind(goal, chain(5, 5, 3, taken=(5, 3))) == ["b"]
    assert behind(goal, chain(5, 5, 5, taken=(5, 5))) == []


def test_a_change_that_does_not_reach_the_next_table() -> None:
    # a has taken in epoch 5, and nothing of it came out: its log still ends at 3.
    goal = Goal({"s": 5})
    state = state_of({"s": 5, "a": 3, "b": 3}, table("a", {"s": 5}, 5), table("b", {"a": 3}, 3))
    assert behind(goal, state) == []


def test_later_changes_are_not_waited_for() -> None:
    goal = Goal({"s": 5})
    assert behind(goal, chain(7, 5, 3, taken=(5, 3))) == ["b"]
    # a has moved on to 7; b came to what a was when it was first seen to have all.
    assert behind(goal, chain(9, 7, 5, taken=(7, 5))) == []


def test_tables_that_read_each_other() -> None:
    def cycle(taken: int, at: int) -> State:
        members: tuple[StreamTable, ...] = (
            table("a", {"s": taken, "b": at}, at),
            table("b", {"a": at}, at),
        )
        return state_of({"s": 5, "a": at, "b": at}, *members)

    goal = Goal({"s": 5})
    assert "a" in behind(goal, cycle(3, 3), "a")
    assert behind(goal, cycle(5, 5), "a") == []


def test_a_source_that_was_copied_since_is_taken_in_as_it_was_copied() -> None:
    goal = Goal({"s": 5})
    state = state_of({"s": 5, "t": 6, "a": 5}, table("a", {"s": 5, "t": 5}, 5))
    assert behind(goal, state, "a") == ["a"]
    state = state_of({"s": 5, "t": 8, "a": 6}, table("a", {"s": 5, "t": 6}, 6))
    assert behind(goal, state, "a") == []


def test_a_table_that_waits_for_its_rebuild_is_behind() -> None:
    goal = Goal({"s": 0})
    assert behind(goal, state_of({"s": 5, "a": 5}, table("a", {"s": 0}, 5)), "a") == ["a"]
