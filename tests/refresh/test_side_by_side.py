"""Tasks that wait for each other, and those that do not and are performed at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from threading import Barrier, Event, get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.refresh.parallel import run_parallel
from headrace.spark.jobs import acting_thread

PATIENCE = 30.0
graphs = st.dictionaries(st.integers(0, 9), st.frozensets(st.integers(0, 9), max_size=4)).map(
    lambda graph: {name: {o for o in others if o < name} for name, others in graph.items()}
)


def nothing() -> None:
    """Nothing is cancelled."""


def perform(
    waits_for: Mapping[str, Set[str]],
    tasks: Mapping[str, Callable[[], object]],
    most: int = 4,
    cancel: Callable[[], None] = nothing,
) -> list[str]:
    """Perform the tasks; the names in the order in which they ended."""
    ended: list[str] = []
    run_parallel(waits_for, tasks.get, lambda name, _: ended.append(name), most, cancel)
    return ended


def test_two_that_do_not_wait_for_each_other_are_under_way_at_the_same_time() -> None:
    both = Barrier(2, timeout=PATIENCE)
    waits_for: dict[str, set[str]] = {"b": set(), "c": set(), "d": {"b", "c"}}
    ended = perform(waits_for, {"b": both.wait, "c": both.wait, "d": get_ident})
    assert sorted(ended[:2]) == ["b", "c"]
    assert ended[2] == "d"


def test_no_more_than_so_many_at_once() -> None:
    lock, at_once, most = threading.Lock(), 0, 0

    def task() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        Event().wait(0.01)
        with lock:
            at_once -= 1

    names = [str(number) for number in range(9)]
    assert sorted(perform({n: set() for n in names}, dict.fromkeys(names, task), 3)) == names
    assert most <= 3


def test_what_has_nothing_to_do_holds_nobody_up() -> None:
    ended = perform({"a": set(), "b": {"a"}, "c": {"b"}}, {"c": get_ident})
    assert ended == ["c"]


def test_a_task_by_itself_is_performed_by_the_caller() -> None:
    threads: dict[str, int] = {}
    waits_for: dict[str, set[str]] = {"a": set(), "b": {"a"}}
    perform(waits_for, {n: lambda n=n: threads.update({n: get_ident()}) for n in waits_for})
    assert set(threads.values()) == {get_ident()}


def test_helpers_act_for_the_caller() -> None:
    both = Barrier(2, timeout=PATIENCE)
    seen: list[tuple[int, bool]] = []

    def task() -> None:
        both.wait()
        seen.append((acting_thread(), get_ident() == threading.main_thread().ident))

    perform({"a": set(), "b": set()}, {"a": task, "b": task})
    assert seen == [(get_ident(), False)] * 2
    assert acting_thread() == get_ident()


def test_a_failure_cancels_the_others_and_begins_none() -> None:
    cancelled, begun = Event(), Event()

    def slow() -> None:
        begun.set()
        assert cancelled.wait(PATIENCE)

    def failing() -> None:
        assert begun.wait(PATIENCE)
        raise ValueError("as expected")

    waits_for: dict[str, set[str]] = {"slow": set(), "failing": set(), "later": {"failing"}}
    tasks = {"slow": slow, "failing": failing, "later": lambda: pytest.fail("it was begun")}
    with pytest.raises(ValueError, match="as expected"):
        perform(waits_for, tasks, cancel=cancelled.set)
    assert cancelled.is_set()


@given(graphs, st.integers(1, 4), st.sets(st.integers(0, 9)))
def test_everything_is_performed_after_what_it_waits_for(
    waits_for: dict[int, set[int]], most: int, idle: set[int]
) -> None:
    ended: list[int] = []
    begun: list[int] = []

    def begin(name: int) -> Callable[[], int] | None:
        known = set(waits_for) & set(waits_for[name])
        assert known <= set(ended) | idle
        begun.append(name)
        return None if name in idle else lambda: name

    run_parallel(waits_for, begin, lambda _, name: ended.append(name), most, nothing)
    assert sorted(begun) == sorted(waits_for)
    assert sorted(ended) == sorted(set(waits_for) - idle)
