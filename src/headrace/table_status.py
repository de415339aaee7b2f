"""Where a stream table stands, as users are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.blockers import Blocker
from headrace.catalog.records import StreamTable
from headrace.graph.network import Dependency, Network
from headrace.lags import Lag


@dataclass(frozen=True)
class TableStatus:
    """A stream table as it stands: what it shows, since when, and how far behind it is.

    `scc_id` numbers the component of tables that read each other, None if it is in none. `edges`
    say how it depends on each table that it reads. `group` numbers the group of tables that ways
    from one source lead through, None if it is alone.

    `lag` is the age of what it shows. `lag_own` is for how long the oldest change that it lacks has
    been available to it, `lag_inherited` the largest such lag of what it reads; both are zero where
    nothing is lacking. `blocked_by` is the suspended or failed table that keeps it from moving, if
    that is another one; `failures` counts its own in a row. `held` says that it was suspended by
    hand.
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
    options: Mapping[str, Any] = field(default_factory=dict)
    group: int | None = None
    lag_own: timedelta | None = None
    lag_inherited: timedelta | None = None
    blocked_by: Blocker | None = None
    failures: int = 0
    tier: str = "hot"
    held: bool = False


def status_of(
    table: StreamTable, network: Network, lags: Lag, blocked_by: Blocker | None, tier: str
) -> TableStatus:
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
        options=table.options,
        group=network.group(name),
        lag_own=lags.own,
        lag_inherited=lags.inherited,
        blocked_by=blocked_by,
        failures=table.failures,
        tier=tier,
        held=table.held,
    )
