"""One answer to whether all is well: the daemon, tables, lag, capture, disk and roles, judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.capture.wal.slot_probe import LEVELS, Level
from headrace.catalog.records import Heartbeat, Lease
from headrace.observe.cdc_status import SourceHealth
from headrace.observe.heartbeat import SILENCE, is_silent, is_stuck
from headrace.observe.table_status import TableStatus
from headrace.schedule.schedule import Timed, moment_after
from headrace.schedule.tiers import Tier

MOST_NAMED = 3
# A refresh takes its time, so nothing is called late before that.
PATIENCE = timedelta(minutes=1)
GIGABYTE = 2**30
# The free share of a disk, and the free bytes, below which the disk has this level.
FREE: tuple[tuple[Level, float, int], ...] = (
    ("critical", 0.02, GIGABYTE),
    ("warning", 0.10, 5 * GIGABYTE),
)

Finding = tuple[Level, str]


@dataclass(frozen=True)
class Check:
    """One area that was checked. `detail` names what is wrong, or says what was observed."""

    area: str
    level: Level
    detail: str


@dataclass(frozen=True)
class Health:
    """All areas, each as bad as the worst in it."""

    checks: tuple[Check, ...]

    @property
    def level(self) -> Level:
        return max((check.level for check in self.checks), key=LEVELS.index)


def daemon(
    lease: Lease | None, tables: Sequence[TableStatus], heartbeat: Heartbeat | None = None
) -> Check:
    """Check that a project with schedules has a daemon, and that the daemon works."""
    if lease is not None and heartbeat is not None:
        hint = f"see its log file, or end process {lease.pid} and start headrace up again"
        if is_silent(heartbeat):
            problem = f"{lease.holder} has the lease and was last heard {_ago(heartbeat.age)} ago"
            return Check("daemon", "critical", f"{problem}: it is paused or hangs; {hint}")
        if is_stuck(heartbeat):
            problem = f"the loop of {lease.holder} has been stuck for {_ago(heartbeat.in_round)}"
            return Check("daemon", "critical", f"{problem}; {hint}")
    if lease is not None:
        busy = ""
        if heartbeat is not None and heartbeat.busy and heartbeat.in_round > SILENCE:
            busy = f", and has been {heartbeat.busy} for {_ago(heartbeat.in_round)}"
        return Check("daemon", "fine", f"{lease.holder} serves since {lease.acquired_at:%c}{busy}")
    scheduled = sum(table.schedule is not None for table in tables)
    if scheduled:
        return Check("daemon", "critical", f"none runs, and {scheduled} tables have a schedule")
    return Check("daemon", "fine", "none runs, and no table has a schedule")


def tables(found: Sequence[TableStatus]) -> Check:
    """Check for tables that are suspended, fail, or are blocked."""
    findings: list[Finding] = []
    for table in found:
        if table.status in ("SUSPENDED", "ERROR"):
            findings.append(("critical", f"{table.name} is {table.status}: {table.reason}"))
        elif table.failures:
            findings.append(("warning", f"{table.name} failed {table.failures} times in a row"))
        elif table.blocked_by is not None:
            findings.append(("warning", f"{table.name} waits for {table.blocked_by.name}"))
    waiting = sum(table.epoch == 0 for table in found)
    rest = f"{waiting} of them not filled yet" if waiting else "all of them maintained"
    return _check("tables", findings, f"{len(found)} stream tables, {rest}")


def lag(
    found: Sequence[TableStatus],
    schedules: Mapping[str, Collection[Timed]],
    now: datetime,
    sources: Sequence[SourceHealth] = (),
) -> Check:
    """Check for tables that lack changes for longer than twice what their schedules promise, and
    for tables with such a promise whose lag is unknown.

    `schedules` are those that each table follows, by relation.
    """
    findings: list[Finding] = []
    silent = {source.source for source in sources if not source.answers}
    for table in found:
        follows, tier = schedules.get(table.relation, ()), Tier(table.tier_in_force)
        if table.lag_own and is_late(follows, tier, table.lag_own, now):
            findings.append(("warning", f"{table.name} {behind(table.lag_own)}"))
            continue
        why = _why_unknown(table, silent)
        if why is not None and _promises(follows, tier):
            findings.append(("warning", f"the lag of {table.name} is unknown: {why}"))
    return _check("lag", findings, "no table is later than its schedule says")


def _why_unknown(table: TableStatus, silent: Collection[str]) -> str | None:
    """Return why the lag of a table is unknown, None if it is known.

    `silent` are the sources whose database does not answer.
    """
    if table.epoch == 0:
        return "it has never been refreshed"
    if table.lag_own is None:
        return "the log or the history of what it reads is not readable"
    names = [captured.source for captured in table.capture if captured.source in silent]
    return f"the database of {names[0]} does not answer" if names else None


def _promises(schedules: Collection[Timed], tier: Tier) -> Collection[Timed]:
    """Return the schedules that promise a lag: none to a table of a tier that waits for reads."""
    return () if tier.waits_for_reads else schedules


def is_late(schedules: Collection[Timed], tier: Tier, lag: timedelta, now: datetime) -> bool:
    """Return whether changes have been lacking for longer than twice what is promised.

    Of several schedules the tightest counts.
    """
    available = now - lag
    moments = (
        moment_after(schedule, available, tier.turns) for schedule in _promises(schedules, tier)
    )
    return any(due is not None and now - due > max(due - available, PATIENCE) for due in moments)


def _ago(age: timedelta) -> str:
    return str(age).split(".")[0]


def behind(lag: timedelta) -> str:
    return f"has lacked changes for {_ago(lag)}"


def capture(sources: Sequence[SourceHealth]) -> Check:
    """Check for sources that are not captured, or that have a backlog of changes."""
    findings = [
        (source.level, f"{source.source}: {source.alert}") for source in sources if source.alert
    ]
    return _check("capture", findings, f"{len(sources)} sources are captured")


def disk(free: int, total: int) -> Check:
    """Check the free space of the disk that the project is on."""
    free_space = f"{free / GIGABYTE:,.1f} of {total / GIGABYTE:,.1f} GB are free"
    for level, share, least in FREE:
        if free < min(share * total, least):
            return Check("disk", level, free_space)
    return Check("disk", "fine", free_space)


def roles(superusers: Sequence[str]) -> Check:
    """Check for roles of Headrace that may do more than they need."""
    findings: list[Finding] = [("warning", f"role {role} is a superuser") for role in superusers]
    return _check("roles", findings, "no role of Headrace is a superuser")


def _check(area: str, findings: Iterable[Finding], else_: str) -> Check:
    """Return the check of an area, which names at most `MOST_NAMED` findings, the worst first."""
    worst_first = sorted(findings, key=lambda finding: LEVELS.index(finding[0]), reverse=True)
    if not worst_first:
        return Check(area, "fine", else_)
    named = "; ".join(text for _, text in worst_first[:MOST_NAMED])
    more = len(worst_first) - MOST_NAMED
    return Check(area, worst_first[0][0], f"{named}; and {more} more" if more > 0 else named)
