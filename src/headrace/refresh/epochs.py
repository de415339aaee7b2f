"""Which epoch a refresh is of, how far it takes in its inputs, and how old what it shows is. Pure.

An epoch names, for every source database, its latest cut, and a relation advances at most once at
an epoch. So a refresh is of the newest cut's epoch, unless that is used up: then a number of its
own names the same cuts once more. What reads that is of the same number, or of a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from headrace.catalog import State
from headrace.catalog.records import Source, StreamTable, taken_in

Times = Mapping[str, datetime | None]
"""Relations that were advanced in this refresh, and the time of the cut behind each."""


def newest_cut(state: State) -> int:
    """Return the epoch of the newest cut of any database."""
    return max((database.epoch for database in state.databases), default=0)


def newest_known(state: State, tables: Iterable[StreamTable]) -> int:
    """Return the newest epoch of any cut, of the tables, and of the stream tables that these read.

    A refresh that takes them in is of no older epoch, so that an epoch shows nothing of a later
    one.
    """
    members = tuple(tables)
    read = (state.origin(name) for table in members for name in table.inputs)
    epochs = (table.epoch for table in (*members, *read) if isinstance(table, StreamTable))
    return max((newest_cut(state), *epochs))


def may_move(state: State, tables: Iterable[StreamTable]) -> tuple[StreamTable, ...]:
    """Return the tables into which a change comes, directly or through others of them.

    Each comes after those that it reads; of tables that read each other all move.
    """
    candidates = tuple(tables)
    moving: dict[str, StreamTable] = {}
    while True:
        more = {
            table.relation: table
            for table in candidates
            if table.relation not in moving
            and (
                table.epoch == 0
                or lacks(state, table)
                or not moving.keys().isdisjoint(table.inputs)
            )
        }
        if not more:
            return tuple(moving.values())
        moving |= more


def is_used_up(state: State, tables: Iterable[StreamTable], epoch: int) -> bool:
    """Return whether one of the tables, or a reader of it, is as far as the epoch already."""
    return any(
        table.epoch >= epoch
        or any(
            taken_in(reader, table.relation) >= epoch for reader in state.readers(table.relation)
        )
        for table in tables
    )


def frontier(state: State, table: StreamTable, epoch: int, moved: Times) -> dict[str, int]:
    """Return for every input the epoch up to which a refresh takes it in.

    What moves in the same refresh is taken in up to its epoch, all else as it is published.
    """
    return {name: epoch if name in moved else _published(state, name) for name in table.inputs}


def _published(state: State, relation: str) -> int:
    origin = state.origin(relation)
    if isinstance(origin, StreamTable):
        return origin.epoch
    assert isinstance(origin, Source)
    return state.database(origin.database).epoch


def data_time(state: State, table: StreamTable, moved: Times) -> datetime | None:
    """Return the time of the oldest cut that a table shows once it has taken in its inputs.

    A stream table that lacks no available change is as fresh as its own inputs, whenever it was
    published.
    """
    times: list[datetime] = []
    visited = {table.relation}

    def visit(names: Iterable[str]) -> None:
        for name in names:
            if name in visited:
                continue
            visited.add(name)
            origin = state.origin(name)
            if name in moved:
                time = moved[name]
            elif isinstance(origin, Source):
                time = state.database(origin.database).cut_at
            elif isinstance(origin, StreamTable) and lacks(state, origin):
                time = origin.as_of
            elif isinstance(origin, StreamTable):
                visit(origin.inputs)
                continue
            else:
                continue
            if time is not None:
                times.append(time)

    visit(table.inputs)
    return min(times, default=None)


def lacks(state: State, table: StreamTable) -> frozenset[str]:
    """Return the inputs with changes beyond what the table has taken in; its own relation is none.

    A change of only the operator state of an input is no change to the readers of the input.
    """
    return frozenset(
        name
        for name in table.inputs
        if name != table.relation and state.relation(name).changed_at > taken_in(table, name)
    )
