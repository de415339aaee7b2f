"""Blockers name the root that keeps a table from advancing."""

from __future__ import annotations

from typing import Any

from headrace.catalog import State
from headrace.catalog.records import Status
from headrace.observe.blockers import Blocker, blockers
from headrace.refresh.scope import consistency_groups
from headrace.settings import Settings
from tests.observe.states import NOON, state_of, table

CHAIN = {"a": ("s",), "b": ("a",), "c": ("b",)}
DIAMOND = {"a": ("s",), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ("d",)}
SUSPENDED = {"status": Status.SUSPENDED, "reason": "by hand"}
FAILED = {"status": Status.ERROR, "reason": "division by zero"}


def standing(
    reads: dict[str, tuple[str, ...]], failure: str | None = None, **changed: dict[str, Any]
) -> State:
    tables = [
        table(name, dict.fromkeys(inputs, 1), 1, **changed.get(name, {}))
        for name, inputs in reads.items()
    ]
    failing = {} if failure is None else {"failing_since": NOON, "failure": failure}
    return state_of(dict.fromkeys(("s", "t", *reads), 1), *tables, **failing)


def found(state: State, **settings: Any) -> dict[str, Blocker]:
    return blockers(state, consistency_groups(state, Settings.of(settings)))


def test_active_tables_have_no_blockers() -> None:
    assert found(standing(DIAMOND)) == {}


def test_a_chain_waits_for_its_first_inactive_table() -> None:
    state = standing(CHAIN, a=SUSPENDED, b=FAILED)
    root = Blocker("public.a", "by hand")
    assert found(state) == {"b": root, "c": root}
    assert str(root) == "public.a (by hand)"


def test_a_group_waits_for_its_member_and_its_readers_do() -> None:
    state = standing(DIAMOND, c=FAILED)
    root = Blocker("public.c", "division by zero")
    assert found(state) == {"b": root, "d": root, "e": root}


def test_without_consistency_only_readers_wait() -> None:
    state = standing(DIAMOND, c=FAILED)
    root = Blocker("public.c", "division by zero")
    assert found(state, diamond_consistency="none") == {"d": root, "e": root}


def test_two_members_wait_for_each_other_and_others_for_the_first() -> None:
    state = standing(DIAMOND, b=SUSPENDED, c=FAILED)
    by_hand, zero = Blocker("public.b", "by hand"), Blocker("public.c", "division by zero")
    assert found(state) == {"b": zero, "c": by_hand, "d": by_hand, "e": by_hand}


def test_tables_that_read_each_other() -> None:
    state = standing({"a": ("s", "b"), "b": ("a",), "c": ("b",)}, b=FAILED)
    root = Blocker("public.b", "division by zero")
    assert found(state) == {"a": root, "c": root}


def test_the_root_is_the_first_in_order_whatever_its_name() -> None:
    reads = {"z": ("s",), "m": ("z",), "b": ("m",), "top": ("b", "z")}
    state = standing(reads, z=SUSPENDED, b=FAILED)
    assert set(found(state).values()) == {Blocker("public.z", "by hand")}
    assert set(found(state)) == {"m", "b", "top"}
    sides = standing({"z": ("s",), "a": ("t",), "top": ("a", "z")}, z=SUSPENDED, a=FAILED)
    assert found(sides) == {"top": Blocker("public.a", "division by zero")}


def test_all_that_read_a_database_wait_for_it() -> None:
    home = Blocker("database home", "the disk is full")
    assert found(standing(CHAIN, "the disk is full")) == dict.fromkeys("abc", home)


def test_a_table_that_is_suspended_comes_before_its_database() -> None:
    by_hand, home = Blocker("public.a", "by hand"), Blocker("database home", "no")
    assert found(standing(CHAIN, "no", a=SUSPENDED)) == {"a": home, "b": by_hand, "c": by_hand}
