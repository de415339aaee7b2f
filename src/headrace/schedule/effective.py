"""Effective schedules: what a table follows, if that is up to those that read it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.graph.components import components
from headrace.schedule.schedule import Calculated, Schedule, Timed


def effective_schedules(
    schedules: Mapping[str, Schedule | None], reads: Mapping[str, Iterable[str]]
) -> dict[str, frozenset[Timed]]:
    """For every table the schedules that it follows; it is due when any of them is.

    A table with a schedule of its own follows that one, a manual table none. A calculated one
    follows those of all its readers, through calculated readers also those of theirs; so it has
    none if nothing with a schedule reads it. Tables that read each other and are calculated
    follow the same ones. `reads` may name inputs that are no stream tables.
    """
    found = {
        name: frozenset(() if one is None or isinstance(one, Calculated) else (one,))
        for name, one in schedules.items()
    }
    calculated = {name for name, one in schedules.items() if isinstance(one, Calculated)}
    readers = readers_of(reads, calculated)
    for component in reversed(
        components({name: calculated & set(reads.get(name, ())) for name in calculated})
    ):
        asked = (found[reader] for name in component.members for reader in readers[name])
        follows: frozenset[Timed] = frozenset().union(*asked)
        found |= dict.fromkeys(component.members, follows)
    return found


def readers_of(reads: Mapping[str, Iterable[str]], names: Iterable[str]) -> dict[str, set[str]]:
    """For each of these names who reads it."""
    readers: dict[str, set[str]] = {name: set() for name in names}
    for reader, inputs in reads.items():
        for name in inputs:
            if name in readers:
                readers[name].add(reader)
    return readers
