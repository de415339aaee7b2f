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

    None is not known: a table was never published, or the store cannot be read.
    """

    own: timedelta | None = timedelta(0)
    inherited: timedelta | None = timedelta(0)


def lags(state: State, available: Available, now: datetime) -> dict[str, Lag]:
    """The lag of every stream table, by relation."""
    tables = {table.relation: table for table in state.stream_tables}
    own = {name: _own(state, table, available, now) for name, table in tables.items()}
    found: dict[str, Lag] = {}
    for component in components({name: table.inputs for name, table in tables.items()}):
        members = frozenset(component.members)
        if members.isdisjoint(tables):
            continue
        below = {name for one in members for name in tables[one].inputs if name in found}
        outside = [lag for name in below for lag in (found[name].own, found[name].inherited)]
        for name in members:
            found[name] = Lag(
                own[name], _largest([*outside, *(own[one] for one in members - {name})])
            )
    return found


def _own(state: State, table: StreamTable, available: Available, now: datetime) -> timedelta | None:
    if table.epoch == 0:
        return None
    times = [available(name, taken_in(table, name)) for name in lacks(state, table)]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return None
    known += [one.failing_since for one in failing_databases(state, table) if one.failing_since]
    return max(now - min(known), timedelta(0)) if known else timedelta(0)


def failing_databases(state: State, table: StreamTable) -> tuple[DatabaseRecord, ...]:
    """The databases that a table reads itself, and whose changes cannot be taken in."""
    origins = map(state.origin, table.inputs)
    numbers = {one.database for one in origins if isinstance(one, Source)}
    failing = (one for one in state.databases if one.failing_since is not None)
    return tuple(one for one in failing if one.id in numbers)


def _largest(lags: Iterable[timedelta | None]) -> timedelta | None:
    """The largest that is known; None if there are some and none of them is."""
    every = list(lags)
    known = [lag for lag in every if lag is not None]
    if every and not known:
        return None
    return max(known, default=timedelta(0))


def availability(engine: Engine, state: State) -> Available:
    """What the logs, the cuts and the history say."""
    known: dict[tuple[str, int], datetime | None] = {}

    def available(relation: str, after: int) -> datetime | None:
        if (relation, after) not in known:
            known[relation, after] = _available(engine, state, relation, after)
        return known[relation, after]

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
    later = [one for one in lines if one.epoch > after and relation in one.versions]
    # What moved nothing but operator state is, to readers, no change.
    shown = [one for one in later if one.rows_inserted + one.rows_deleted]
    return min((one.finished_at for one in shown or later), default=None)
