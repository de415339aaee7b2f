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
# The share of a disk, and the bytes, below which somebody should know.
FREE: tuple[tuple[Level, float, int], ...] = (
    ("critical", 0.02, GIGABYTE),
    ("warning", 0.10, 5 * GIGABYTE),
)

Finding = tuple[Level, str]


@dataclass(frozen=True)
class Check:
    """One area that was looked at. `detail` names what is wrong, or says what was seen."""

    area: str
    level: Level
    detail: str


@dataclass(frozen=True)
class Health:
    """All areas, each as bad as the worst in it."""

    checks: tuple[Check, ...]

    @property
    def level(self) -> Level:
        return max((one.level for one in self.checks), key=LEVELS.index)


def daemon(
    lease: Lease | None, tables: Sequence[TableStatus], heartbeat: Heartbeat | None = None
) -> Check:
    """A project with schedules needs a daemon, and one that has the lease has to work."""
    if lease is not None and heartbeat is not None:
        hint = f"see its log file, or end process {lease.pid} and start headrace up again"
        if is_silent(heartbeat):
            what = f"{lease.holder} has the lease and was last heard {_ago(heartbeat.age)} ago"
            return Check("daemon", "critical", f"{what}: it is paused or hangs; {hint}")
        if is_stuck(heartbeat):
            what = f"the loop of {lease.holder} has been stuck for {_ago(heartbeat.in_round)}"
            return Check("daemon", "critical", f"{what}; {hint}")
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
    """Tables that are not served any more as their queries say, or fail."""
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
    """Tables that lack changes for longer than twice what their schedules promise, and tables with
    such a promise whose lag is unknown.

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
    names = [one.source for one in table.capture if one.source in silent]
    return f"the database of {names[0]} does not answer" if names else None


def _promises(schedules: Collection[Timed], tier: Tier) -> Collection[Timed]:
    """Return the schedules that promise a lag: none to a table of a tier that waits for reads."""
    return () if tier.waits_for_reads else schedules


def is_late(schedules: Collection[Timed], tier: Tier, lag: timedelta, now: datetime) -> bool:
    """Return whether changes have been lacking for longer than twice what is promised.

    Of several schedules the tightest counts.
    """
    available = now - lag
    moments = (moment_after(one, available, tier.turns) for one in _promises(schedules, tier))
    return any(due is not None and now - due > max(due - available, PATIENCE) for due in moments)


def _ago(age: timedelta) -> str:
    return str(age).split(".")[0]


def behind(lag: timedelta) -> str:
    return f"has lacked changes for {_ago(lag)}"


def capture(sources: Sequence[SourceHealth]) -> Check:
    """Sources that are not captured, or whose changes pile up."""
    findings = [(one.level, f"{one.source}: {one.alert}") for one in sources if one.alert]
    return _check("capture", findings, f"{len(sources)} sources are captured")


def disk(free: int, total: int) -> Check:
    """The disk that the project is on."""
    seen = f"{free / GIGABYTE:,.1f} of {total / GIGABYTE:,.1f} GB are free"
    for level, share, least in FREE:
        if free < min(share * total, least):
            return Check("disk", level, seen)
    return Check("disk", "fine", seen)


def roles(superusers: Sequence[str]) -> Check:
    """Roles of Headrace that may do more than they need."""
    findings: list[Finding] = [("warning", f"role {role} is a superuser") for role in superusers]
    return _check("roles", findings, "no role of Headrace is a superuser")


def _check(area: str, findings: Iterable[Finding], else_: str) -> Check:
    """The worst first, and as many as can be read."""
    found = sorted(findings, key=lambda one: LEVELS.index(one[0]), reverse=True)
    if not found:
        return Check(area, "fine", else_)
    named = "; ".join(text for _, text in found[:MOST_NAMED])
    more = len(found) - MOST_NAMED
    return Check(area, found[0][0], f"{named}; and {more} more" if more > 0 else named)
