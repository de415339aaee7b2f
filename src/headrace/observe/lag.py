"""How far behind stream tables are: by what they have not taken in, and by what they read.

A change is available to a table from the moment at which a source's cut, or the publish of a
stream table that it reads, has it. While the changes of a database cannot be taken in, there may be
some since that began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.catalog import State
from headrace.catalog.records import DatabaseRecord, Source, StreamTable, taken_in
from headrace.engine import Engine
from headrace.errors import NeedsReinit, Unavailable
from headrace.graph.components import components
from headrace.refresh.epochs import lacks

# For a relation and an epoch, when the first change after it became available; None: not known.
Available = Callable[[str, int], datetime | None]


@dataclass(frozen=True)
class Lag:
    """`own`: for how long the oldest change that a table lacks has been available to it.
    `inherited`: the largest own lag of the stream tables that it reads, directly or not.

    None means unknown: a table was never published, or the store cannot be read.
    """

    own: timedelta | None = timedelta(0)
    inherited: timedelta | None = timedelta(0)


def lags(state: State, available: Available, now: datetime) -> dict[str, Lag]:
    """Return the lag of every stream table, by relation."""
    tables = {table.relation: table for table in state.stream_tables}
    own = {name: _own(state, table, available, now) for name, table in tables.items()}
    lag_by_relation: dict[str, Lag] = {}
    for component in components({name: table.inputs for name, table in tables.items()}):
        members = frozenset(component.members)
        if members.isdisjoint(tables):
            continue
        below = {
            name for member in members for name in tables[member].inputs if name in lag_by_relation
        }
        outside = [
            lag
            for name in below
            for lag in (lag_by_relation[name].own, lag_by_relation[name].inherited)
        ]
        for name in members:
            lag_by_relation[name] = Lag(
                own[name], _largest([*outside, *(own[member] for member in members - {name})])
            )
    return lag_by_relation


def _own(state: State, table: StreamTable, available: Available, now: datetime) -> timedelta | None:
    if table.epoch == 0:
        return None
    times = [available(name, taken_in(table, name)) for name in lacks(state, table)]
    known_times = [time for time in times if time is not None]
    if len(known_times) < len(times):
        return None
    known_times += [
        database.failing_since
        for database in failing_databases(state, table)
        if database.failing_since
    ]
    return max(now - min(known_times), timedelta(0)) if known_times else timedelta(0)


def failing_databases(state: State, table: StreamTable) -> tuple[DatabaseRecord, ...]:
    """Return the databases that a table reads itself and whose changes cannot be taken in."""
    origins = map(state.origin, table.inputs)
    numbers = {origin.database for origin in origins if isinstance(origin, Source)}
    failing = (database for database in state.databases if database.failing_since is not None)
    return tuple(database for database in failing if database.id in numbers)


def _largest(lags: Iterable[timedelta | None]) -> timedelta | None:
    """Return the largest known lag; None if there are lags and none of them is known."""
    every = list(lags)
    known_lags = [lag for lag in every if lag is not None]
    if every and not known_lags:
        return None
    return max(known_lags, default=timedelta(0))


def availability(engine: Engine, state: State) -> Available:
    """Return the function that finds in logs, cuts and history when changes became available."""
    cache: dict[tuple[str, int], datetime | None] = {}

    def available(relation: str, after: int) -> datetime | None:
        if (relation, after) not in cache:
            cache[relation, after] = _available(engine, state, relation, after)
        return cache[relation, after]

    return available


def _available(engine: Engine, state: State, relation: str, after: int) -> datetime | None:
    pin = state.relation(relation).pin
    try:
        files = engine.store.files(relation, pin, after, pin.epoch)
    except (NeedsReinit, Unavailable):
        return None
    epoch = min((file.first_epoch for file in files), default=pin.epoch)
    origin = state.origin(relation)
    if isinstance(origin, Source):
        cuts = engine.catalog.cuts(epoch)
        return next((cut.cut_at for cut in cuts if cut.database == origin.database), None)
    if isinstance(origin, StreamTable) and origin.epoch == epoch:
        return origin.published_at
    lines = engine.catalog.refreshes(relation, None)
    later = [refresh for refresh in lines if refresh.epoch > after and relation in refresh.versions]
    # To readers, a refresh that changed only operator state is no change.
    visible = [refresh for refresh in later if refresh.rows_inserted + refresh.rows_deleted]
    return min((refresh.finished_at for refresh in visible or later), default=None)
