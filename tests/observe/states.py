"""States of the catalog, made of who reads what and how far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from headrace.catalog import State
from headrace.catalog.records import DatabaseRecord, Relation, Source, Status, StreamTable
from headrace.store import Pin

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def table(name: str, frontier: Mapping[str, int], epoch: int, **changed: Any) -> StreamTable:
    """A stream table that has taken in its inputs as far as `frontier` says."""
    made = StreamTable(
        name,
        "public",
        name,
        "",
        (),
        tuple(frontier),
        frontier=frontier,
        epoch=epoch,
        status=Status.ACTIVE,
        published_at=NOON,
    )
    return replace(made, **changed)


def state_of(
    pins: Mapping[str, int], *tables: StreamTable, epoch: int = 0, **changed: Any
) -> State:
    """A state of these tables; `pins` are the epochs at which their logs and the sources' end.

    What is `changed` is so of the database.
    """
    names = {one.relation for one in tables}
    sources = [
        Source(name, 1, number, "public", name, (), (), "", status=Status.ACTIVE)
        for number, name in enumerate(sorted(pins.keys() - names), 1)
    ]
    relations = [Relation(name, (), (), Pin(0, pin)) for name, pin in pins.items()]
    database = DatabaseRecord(1, "home", "", 0, epoch=epoch or max(pins.values()))
    return State.of([replace(database, **changed)], relations, sources, tables, {})
