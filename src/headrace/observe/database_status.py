"""Status of the source databases of a project, as users see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace.catalog import State
from headrace.engine import HOME


@dataclass(frozen=True)
class DatabaseStatus:
    """A source database: how many tables of it are captured, and its latest cut.

    `address` is what it was attached with; None for the home database. `share`, `quota` and
    `priority` are its claim on a daemon's workers. While a daemon fails to take in its changes,
    `failing_since` says since when, and `failure` why.
    """

    alias: str
    address: str | None
    share: int
    quota: int | None
    priority: int
    sources: int
    epoch: int
    cut_at: datetime | None
    failing_since: datetime | None = None
    failure: str | None = None


def database_statuses(state: State) -> tuple[DatabaseStatus, ...]:
    """Return all databases, the home database first, even before anything in it is captured."""
    statuses = tuple(
        DatabaseStatus(
            database.alias,
            database.address,
            database.share,
            database.quota,
            database.priority,
            sum(source.database == database.id for source in state.sources),
            database.epoch,
            database.cut_at,
            database.failing_since,
            database.failure,
        )
        for database in state.databases
    )
    if any(database.id == HOME for database in state.databases):
        return statuses
    return DatabaseStatus("home", None, 1, None, 0, 0, 0, None), *statuses
