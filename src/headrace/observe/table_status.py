"""Status of a stream table, as users see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.catalog.records import StreamTable, TierInForce
from headrace.graph.network import Network, NetworkEdge
from headrace.observe.blockers import Blocker
from headrace.observe.capture_status import SourceCapture
from headrace.observe.lag import Lag
from headrace.schedule.tiers import AUTO


@dataclass(frozen=True)
class TableStatus:
    """A stream table as it stands: what it shows, since when, and how far behind it is.

    `scc_id` numbers the component of tables that read each other, None if it is in none. `edges`
    say how it depends on each table that it reads. `group` numbers the group of tables on paths
    from one source that meet, None if it is alone; `group_members` are all tables of the group.
    `last_iterations` are those in which its component last came to a fixed point. `capture` has
    every source that it reads, directly or through others. `relation` is how lines of the history
    name the table.

    `lag` is the age of what it shows. `lag_own` is for how long the oldest change that it lacks has
    been available to it, `lag_inherited` the largest such lag of what it reads; both are zero where
    nothing is lacking. `blocked_by` is the suspended or failed table that keeps it from moving, if
    that is another one; `failures` counts its own in a row. `held` says that it was suspended by
    hand, `resumes_by_itself` that a daemon refreshes or rebuilds it although it is suspended now:
    as soon as its sources can be captured again, or because it awaits a rebuild.

    `tier` is the one that was configured, `tier_in_force` the one that a daemon follows. If it
    depends on reads, `reads_per_minute` are those by others, as the daemon counts them; an
    automatic tier becomes `next_tier` at `next_tier_at` if nobody reads the table. `notices` name
    options that have no effect, or a limit.
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
    edges: tuple[NetworkEdge, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    group: int | None = None
    lag_own: timedelta | None = None
    lag_inherited: timedelta | None = None
    blocked_by: Blocker | None = None
    failures: int = 0
    tier: str = "hot"
    tier_in_force: str = "hot"
    reads_per_minute: float | None = None
    next_tier: str | None = None
    next_tier_at: datetime | None = None
    held: bool = False
    notices: tuple[str, ...] = ()
    group_members: tuple[str, ...] = ()
    last_iterations: int | None = None
    capture: tuple[SourceCapture, ...] = ()
    relation: str = ""
    resumes_by_itself: bool = False


def status_of(
    table: StreamTable,
    network: Network,
    lags: Lag,
    blocked_by: Blocker | None,
    tier: str,
    in_force: TierInForce | None,
    notices: tuple[str, ...] = (),
    *,
    last_iterations: int | None = None,
    capture: tuple[SourceCapture, ...] = (),
    resumes_by_itself: bool = False,
) -> TableStatus:
    """Return the status of a stream table now, with its place in the network of all."""
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
        # A table that has not been watched for long is hot.
        tier_in_force=in_force.tier if in_force else "hot" if tier == AUTO else tier,
        reads_per_minute=in_force.reads_per_minute if in_force else None,
        next_tier=in_force.next_tier if in_force else None,
        next_tier_at=in_force.next_at if in_force else None,
        held=table.held,
        notices=notices,
        group_members=network.group_members(name),
        last_iterations=last_iterations,
        capture=capture,
        relation=table.relation,
        resumes_by_itself=resumes_by_itself,
    )
