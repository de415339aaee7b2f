"""Which groups are published as one, and when they are due. Pure.

| a group is | if |
|---|---|
| atomic | it is one component or table, or all its members are `atomic` |
| due with its first member (`fastest`) | no table in which ways meet is `slowest` |
| due with its last member (`slowest`) | one of them is |

What a table does not say itself the settings of the project say.
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
    """Whether all of a group is published together or not at all."""
    return len(group.parts) == 1 or all(
        tables[name].options.get("diamond_consistency", settings.diamond_consistency) == "atomic"
        for name in group.members
    )


def policy(
    group: ConsistencyGroup[Name], tables: Mapping[Name, StreamTable], settings: Settings
) -> Policy:
    """When a group that is atomic is due; in others every table follows its own schedule."""
    found: Policy = "fastest"
    for name in group.convergences:
        own = tables[name].options.get("diamond_schedule_policy", settings.diamond_schedule_policy)
        found = stricter(found, own)
    return found


def stricter(one: Policy, other: Policy) -> Policy:
    """Of two policies the one by which a group is due later."""
    return "slowest" if "slowest" in (one, other) else "fastest"


def units(
    groups: Iterable[ConsistencyGroup[Name]], tables: Mapping[Name, StreamTable], settings: Settings
) -> tuple[ConsistencyGroup[Name], ...]:
    """What is refreshed as one, in order: groups that are atomic, and the parts of those that
    are not, each as a group of its own."""
    found: list[ConsistencyGroup[Name]] = []
    for group in groups:
        if atomic(group, tables, settings):
            found.append(group)
        else:
            found += (ConsistencyGroup((part,)) for part in group.parts)
    return tuple(found)
