"""Which groups are published as one, and when they are due. Pure.

| a group is | if |
|---|---|
| atomic | it is one component or table, was declared as one, or all its members are `atomic` |
| due with its first member (`fastest`) | no table in which paths meet, or declared, is `slowest` |
| due with its last member (`slowest`) | one of them is |

The settings of the project decide where a table has no option.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from headrace.catalog.records import StreamTable
from headrace.graph.components import Name
from headrace.graph.diamonds import ConsistencyGroup
from headrace.settings import Settings

Policy = Literal["fastest", "slowest"]


def atomic(
    group: ConsistencyGroup[Name], tables: Mapping[Name, StreamTable], settings: Settings
) -> bool:
    """Return whether all of a group is published together or not at all."""
    return len(group.pieces) == 1 or all(
        tables[name].options.get("diamond_consistency", settings.diamond_consistency) == "atomic"
        for name in group.members
    )


def policy(
    group: ConsistencyGroup[Name], tables: Mapping[Name, StreamTable], settings: Settings
) -> Policy:
    """Return when an atomic group is due; in others every table follows its own schedule."""
    strictest: Policy = "fastest"
    for name in (*group.convergences, *group.declared):
        own = tables[name].options.get("diamond_schedule_policy", settings.diamond_schedule_policy)
        strictest = stricter(strictest, own)
    return strictest


def stricter(one: Policy, other: Policy) -> Policy:
    """Return the policy of two by which a group is due later."""
    return "slowest" if "slowest" in (one, other) else "fastest"


def units(
    groups: Iterable[ConsistencyGroup[Name]], tables: Mapping[Name, StreamTable], settings: Settings
) -> tuple[ConsistencyGroup[Name], ...]:
    """Return the groups that are refreshed as one, in order: atomic groups, pieces of others."""
    atomic_groups: list[ConsistencyGroup[Name]] = []
    for group in groups:
        if atomic(group, tables, settings):
            atomic_groups.append(group)
        else:
            atomic_groups += (_piece(group, parts) for parts in group.pieces)
    return tuple(atomic_groups)


def _piece(
    group: ConsistencyGroup[Name], parts: tuple[tuple[Name, ...], ...]
) -> ConsistencyGroup[Name]:
    members = frozenset(name for part in parts for name in part)
    declared = tuple(name for name in group.declared if name in members)
    return ConsistencyGroup(parts, (), declared, (parts,))


def declared_groups(tables: Iterable[StreamTable]) -> dict[str, str]:
    """Return, by relation, the name of the group that a table was declared to be of."""
    named = ((table.relation, table.options.get("group")) for table in tables)
    return {relation: name for relation, name in named if name is not None}
