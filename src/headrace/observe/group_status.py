"""Status of the groups of a project's stream tables, as users see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.catalog.records import StreamTable
from headrace.graph.network import Network
from headrace.graph.policy import Policy, atomic, policy
from headrace.settings import Settings


@dataclass(frozen=True)
class GroupMember:
    """A stream table in a group of several; `group` is the group's number.

    `is_convergence` says that paths from one relation meet in it. Members of a group that is
    `atomic` are published together; in others each follows its own schedule, and `policy` is None.
    `declared` is the name of the group that the table was declared to be of.
    """

    group: int
    name: str
    is_convergence: bool
    epoch: int
    policy: Policy | None
    atomic: bool
    declared: str | None = None


def groups_of(
    network: Network, tables: Mapping[str, StreamTable], settings: Settings
) -> tuple[GroupMember, ...]:
    """Return the members of all groups of more than one table, each after those that it reads.

    `tables` are those of the network, by the names that they have there.
    """
    members = []
    for number, group in enumerate(network.groups, 1):
        whole = atomic(group, tables, settings)
        due = policy(group, tables, settings) if whole else None
        members += [
            GroupMember(
                number,
                name,
                name in group.convergences,
                tables[name].epoch,
                due,
                whole,
                network.declared.get(name),
            )
            for name in group.members
        ]
    return tuple(members)
