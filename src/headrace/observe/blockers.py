"""What keeps a stream table from moving: a table below it, or a database. Pure."""

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
    """For the tables that cannot follow, by relation, the root of it.

    That is the first table that is suspended or failed among those that a table reads, directly or
    not, and those that move with it. If there is none, it is the first database below it whose
    changes cannot be taken in. `groups` are those that move as one, by each of their members.
    """
    tables = {table.relation: table for table in state.stream_tables}
    units = {name: (groups.get(name) or (name,)) for name in tables}
    reads: dict[str, set[str]] = {unit[0]: set() for unit in units.values()}
    for name, table in tables.items():
        reads[units[name][0]] |= {units[one][0] for one in table.inputs if one in units}
    roots: dict[str, StreamTable] = {}
    rank: dict[str, int] = {}
    found: dict[str, Blocker] = {}
    for component in components(reads):
        for first in component.members:
            known = {one: roots[one] for one in reads[first] - {first} if one in roots}
            below = sorted(known.values(), key=lambda one: rank[one.relation])
            still = [tables[one] for one in units[first] if tables[one].status in STILL]
            rank |= {name: len(rank) + number for number, name in enumerate(units[first])}
            if below or still:
                roots[first] = (below + still)[0]
            for name in units[first]:
                others = below + [one for one in still if one.relation != name]
                if others:
                    found[name] = _blocker(others[0])
    return _failing(state) | found


def _failing(state: State) -> dict[str, Blocker]:
    """The first failing database that a table reads, directly or through others, by relation."""
    if all(database.failing_since is None for database in state.databases):
        return {}
    found: dict[str, Blocker] = {}
    for table in state.stream_tables:
        below = upstream(state.stream_tables, table)
        failing = {one.id: one for each in below for one in failing_databases(state, each)}
        if failing:
            first = failing[min(failing)]
            found[table.relation] = Blocker(f"database {first.alias}", first.failure)
    return found


def _blocker(table: StreamTable) -> Blocker:
    return Blocker(f"{table.schema}.{table.name}", table.reason)
