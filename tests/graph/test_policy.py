"""Which groups are atomic, when they are due, and what users see of them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.catalog.records import StreamTable
from headrace.errors import UserError
from headrace.graph import ConsistencyGroup, groups
from headrace.graph.network import Network
from headrace.graph.policy import Policy, atomic, policy, stricter, units
from headrace.observe.group_status import GroupMember, groups_of
from headrace.settings import Settings

READS = {"b": ("A",), "c": ("A",), "d": ("b", "c")}
NESTED = {**READS, "e": ("A",), "f": ("d", "e")}
DEFAULT = Settings()


def made(reads: dict[str, tuple[str, ...]], **options: dict[str, Any]) -> dict[str, StreamTable]:
    return {
        name: StreamTable(name, "public", name, "", (), inputs, options=options.get(name, {}))
        for name, inputs in reads.items()
    }


def test_the_policies_there_are() -> None:
    assert Settings.of({"diamond_schedule_policy": "slowest"}).diamond_schedule_policy == "slowest"
    assert Settings.of({"diamond_consistency": "none"}).diamond_consistency == "none"
    for name in ("diamond_schedule_policy", "diamond_consistency"):
        with pytest.raises(UserError) as caught:
            Settings.of({name: "sometimes"})
        assert caught.value.code == "invalid-option"


def test_the_default_is_atomic_and_fastest() -> None:
    assert (DEFAULT.diamond_consistency, DEFAULT.diamond_schedule_policy) == ("atomic", "fastest")
    (group,) = groups(READS)
    assert atomic(group, made(READS), DEFAULT)
    assert policy(group, made(READS), DEFAULT) == "fastest"


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("fastest", "fastest", "fastest"),
        ("fastest", "slowest", "slowest"),
        ("slowest", "fastest", "slowest"),
        ("slowest", "slowest", "slowest"),
    ],
)
def test_the_slowest_is_the_stricter(one: Policy, other: Policy, found: Policy) -> None:
    assert stricter(one, other) == found


@pytest.mark.parametrize(("own", "default"), [("slowest", "fastest"), ("fastest", "slowest")])
def test_a_convergence_table_overrides_the_project(own: Policy, default: Policy) -> None:
    (group,) = groups(READS)
    settings = Settings(diamond_schedule_policy=default)
    assert policy(group, made(READS), settings) == default
    assert policy(group, made(READS, d={"diamond_schedule_policy": own}), settings) == own


def test_intermediates_have_no_say() -> None:
    (group,) = groups(READS)
    tables = made(READS, b={"diamond_schedule_policy": "slowest"})
    assert policy(group, tables, DEFAULT) == "fastest"


@pytest.mark.parametrize("slow", ["d", "f"])
def test_of_nested_diamonds_the_strictest_wins(slow: str) -> None:
    (group,) = groups(NESTED)
    assert group.convergences == ("d", "f")
    says: dict[str, dict[str, Any]] = {
        name: {"diamond_schedule_policy": "slowest" if name == slow else "fastest"}
        for name in ("d", "f")
    }
    assert policy(group, made(NESTED, **says), DEFAULT) == "slowest"


def test_a_table_alone_needs_no_policy() -> None:
    alone = ConsistencyGroup((("b",),))
    tables = made(READS, b={"diamond_consistency": "none", "diamond_schedule_policy": "slowest"})
    assert atomic(alone, tables, DEFAULT)
    assert policy(alone, tables, Settings(diamond_schedule_policy="slowest")) == "fastest"


@pytest.mark.parametrize("name", list(READS))
def test_a_group_is_atomic_only_if_all_are(name: str) -> None:
    (group,) = groups(READS)
    assert not atomic(group, made(READS, **{name: {"diamond_consistency": "none"}}), DEFAULT)
    none = Settings(diamond_consistency="none")
    assert not atomic(group, made(READS, **{name: {"diamond_consistency": "atomic"}}), none)
    all_atomic: dict[str, dict[str, Any]] = {
        one: {"diamond_consistency": "atomic"} for one in READS
    }
    assert atomic(group, made(READS, **all_atomic), none)


CIRCLE = {"a": ("b", "S"), "b": ("a",), "c": ("S",), "d": ("b", "c"), "x": ("X",)}


def test_a_component_is_always_atomic_also_within_a_group_that_is_not() -> None:
    none = Settings(diamond_consistency="none")
    circle = ConsistencyGroup((("a", "b"),))
    assert atomic(circle, made(CIRCLE), none)
    found = groups(CIRCLE)
    together = ConsistencyGroup((("a", "b"), ("c",), ("d",)), ("d",))
    assert found == (together, ConsistencyGroup((("x",),)))
    assert units(found, made(CIRCLE), DEFAULT) == found
    assert [unit.parts for unit in units(found, made(CIRCLE), none)] == [
        (("a", "b"),),
        (("c",),),
        (("d",),),
        (("x",),),
    ]


def network(reads: dict[str, tuple[str, ...]]) -> Network:
    return Network({name: dict.fromkeys(inputs, ()) for name, inputs in reads.items()})


def test_members_of_groups_as_users_see_them() -> None:
    reads = {**READS, "g": ("d",), "p": ("Q",), "q": ("Q",), "r": ("p", "q")}
    tables = made(reads, r={"diamond_consistency": "none", "diamond_schedule_policy": "slowest"})
    assert groups_of(network(reads), tables, Settings(diamond_schedule_policy="slowest")) == (
        GroupMember(1, "b", False, 0, "slowest", True),
        GroupMember(1, "c", False, 0, "slowest", True),
        GroupMember(1, "d", True, 0, "slowest", True),
        GroupMember(2, "p", False, 0, None, False),
        GroupMember(2, "q", False, 0, None, False),
        GroupMember(2, "r", True, 0, None, False),
    )
    assert [network(reads).group(name) for name in "bdgr"] == [1, 1, None, 2]


def test_groups_of_one_are_not_listed() -> None:
    reads = {"b": ("A",), "c": ("b",)}
    assert groups_of(network(reads), made(reads), DEFAULT) == ()
