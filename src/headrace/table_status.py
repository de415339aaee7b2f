"""Where a stream table stands, as users are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.catalog.records import StreamTable


@dataclass(frozen=True)
class TableStatus:
    """A stream table as it stands: what it shows, since when, and how far behind it is."""

    name: str
    status: str
    reason: str | None
    epoch: int
    as_of: datetime | None
    lag: timedelta | None
    refresh_mode: str
    schedule: str | None


def status_of(table: StreamTable) -> TableStatus:
    """The stream table as it stands now."""
    lag = None
    if table.as_of is not None:
        lag = max(datetime.now(UTC) - table.as_of, timedelta(0))
    return TableStatus(
        f"{table.schema}.{table.name}",
        table.status.value,
        table.reason,
        table.epoch,
        table.as_of,
        lag,
        table.refresh_mode.value,
        table.schedule,
    )
