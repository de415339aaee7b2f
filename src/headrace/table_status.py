"""Where a stream table stands, as users are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.catalog.records import StreamTable
from headrace.graph.network import Dependency, Network


@dataclass(frozen=True)
class TableStatus:
    """A stream table as it stands: what it shows, since when, and how far behind it is.

    `scc_id` numbers the component of tables that read each other, None if it is in none. `edges`
    say how it depends on each table that it reads.
    """

    name: str
    status: str
    reason: str | None
    epoch: int
    as_of: datetime | None
    lag: timedelta | None
    refresh_mode: str
    schedule: str | None
    stratum: int = 0
    scc_id: int | None = None
    edges: tuple[Dependency, ...] = ()


def status_of(table: StreamTable, network: Network) -> TableStatus:
    """The stream table as it stands now, in the network of all."""
    lag = None
    if table.as_of is not None:
        lag = max(datetime.now(UTC) - table.as_of, timedelta(0))
    name = f"{table.schema}.{table.name}"
    return TableStatus(
        name,
        table.status.value,
        table.reason,
        table.epoch,
        table.as_of,
        lag,
        table.refresh_mode.value,
        table.schedule,
        network.strata[name],
        network.component(name).id,
        tuple(edge for edge in network.edges if edge.reader == name),
    )
