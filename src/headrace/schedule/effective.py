"""Effective schedules: those of a table itself, or of the tables that read it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.graph.components import components
from headrace.schedule.schedule import Calculated, Schedule, Timed


def effective_schedules(
    schedules: Mapping[str, Schedule | None], reads: Mapping[str, Iterable[str]]
) -> dict[str, frozenset[Timed]]:
    """Return for every table the schedules that it follows; a table is due when any of them is.

    A table with a schedule of its own follows that schedule, a manual table none. A calculated one
    follows those of all its readers, through calculated readers also those of theirs; so it has
    none if nothing with a schedule reads it. Tables that read each other and are calculated
    follow the same ones. `reads` may name inputs that are no stream tables.
    """
    effective = {
        name: frozenset(() if schedule is None or isinstance(schedule, Calculated) else (schedule,))
        for name, schedule in schedules.items()
    }
    calculated = {name for name, schedule in schedules.items() if isinstance(schedule, Calculated)}
    readers = readers_of(reads, calculated)
    for component in reversed(
        components({name: calculated & set(reads.get(name, ())) for name in calculated})
    ):
        reader_schedules = (
            effective[reader] for name in component.members for reader in readers[name]
        )
        follows: frozenset[Timed] = frozenset().union(*reader_schedules)
        effective |= dict.fromkeys(component.members, follows)
    return effective


def readers_of(reads: Mapping[str, Iterable[str]], names: Iterable[str]) -> dict[str, set[str]]:
    """Return the readers of each of these names."""
    readers: dict[str, set[str]] = {name: set() for name in names}
    for reader, inputs in reads.items():
        for name in inputs:
            if name in readers:
                readers[name].add(reader)
    return readers
