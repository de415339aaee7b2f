"""What keeps a stream table from being refreshed: a table below it, or a database. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.catalog import State
from headrace.catalog.records import Status, StreamTable
from headrace.graph import upstream
from headrace.graph.components import components
from headrace.observe.lag import failing_databases

STILL = (Status.SUSPENDED, Status.ERROR)


@dataclass(frozen=True)
class Blocker:
    """A stream table that is suspended or failed, or a database that cannot be read, and why."""

    name: str
    reason: str | None

    def __str__(self) -> str:
        return self.name if self.reason is None else f"{self.name} ({self.reason})"


def blockers(state: State, groups: Mapping[str, tuple[str, ...]]) -> dict[str, Blocker]:
    """Return the root cause for each table that cannot be refreshed, by relation.

    The cause is the first suspended or failed table among those that a table reads, directly or
    not, and those that are refreshed with it. Without such a table, the cause is the first database
    below it whose changes cannot be taken in. `groups` are the tables that are refreshed as one, by
    each of their members.
    """
    tables = {table.relation: table for table in state.stream_tables}
    units = {name: (groups.get(name) or (name,)) for name in tables}
    reads: dict[str, set[str]] = {unit[0]: set() for unit in units.values()}
    for name, table in tables.items():
        reads[units[name][0]] |= {
            units[relation][0] for relation in table.inputs if relation in units
        }
    roots: dict[str, StreamTable] = {}
    rank: dict[str, int] = {}
    blocker_by_relation: dict[str, Blocker] = {}
    for component in components(reads):
        for first in component.members:
            roots_below = {unit: roots[unit] for unit in reads[first] - {first} if unit in roots}
            below = sorted(roots_below.values(), key=lambda root: rank[root.relation])
            stopped = [tables[member] for member in units[first] if tables[member].status in STILL]
            rank |= {name: len(rank) + number for number, name in enumerate(units[first])}
            if below or stopped:
                roots[first] = (below + stopped)[0]
            for name in units[first]:
                others = below + [candidate for candidate in stopped if candidate.relation != name]
                if others:
                    blocker_by_relation[name] = _blocker(others[0])
    return _failing(state) | blocker_by_relation


def _failing(state: State) -> dict[str, Blocker]:
    """Return the first failing database that tables read, directly or through others, by table."""
    if all(database.failing_since is None for database in state.databases):
        return {}
    blocker_by_relation: dict[str, Blocker] = {}
    for table in state.stream_tables:
        below = upstream(state.stream_tables, table)
        failing = {
            database.id: database
            for reader in below
            for database in failing_databases(state, reader)
        }
        if failing:
            first = failing[min(failing)]
            blocker_by_relation[table.relation] = Blocker(f"database {first.alias}", first.failure)
    return blocker_by_relation


def _blocker(table: StreamTable) -> Blocker:
    return Blocker(f"{table.schema}.{table.name}", table.reason)
