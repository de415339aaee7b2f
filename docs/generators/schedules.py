"""The tables of schedules.md: what schedules mean, as the code understands them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from headrace.errors import BRANCHES
from headrace.schedule.cron import Cron
from headrace.schedule.retry import backoff
from headrace.schedule.schedule import Calculated, duration, moment_after, parse_schedule

ZONE = "UTC"
NOW = datetime(2026, 3, 26, 12, tzinfo=UTC)
EXAMPLES: tuple[str, ...] = (
    "250ms",
    "30s",
    "1h30m",
    "5 minutes",
    "2w",
    "*/5 * * * *",
    "0 6 * * mon-fri",
    "0 6 * * mon-fri Europe/Berlin",
    "0 0 1 jan,jul *",
    "30 23 L * * America/New_York",
    "0 9 * * mon#1",
    "@daily America/New_York",
    "*/15 0 9 * * *",
)
CLOCKS: tuple[str, ...] = ("30 2 * * *", "0,30 2 * * *", "*/30 2 * * *", "30 * * * *")
SKIPPED = ("Europe/Berlin", datetime(2026, 3, 29, tzinfo=UTC))
REPEATED = ("Europe/Berlin", datetime(2026, 10, 25, tzinfo=UTC))


def schedule_blocks() -> Mapping[str, str]:
    """The blocks of the page, by their names."""
    return {"schedules": _schedules(), "clocks": _clocks(), "retries": _retries()}


def _schedules() -> str:
    """When each example comes round for the first three times."""
    from docs.generate import table

    rows = []
    for text in EXAMPLES:
        schedule = parse_schedule(text, ZONE)
        assert schedule is not None and not isinstance(schedule, Calculated)
        if isinstance(schedule, Cron):
            turns = (moment_after(schedule, NOW, turn) for turn in (1, 2, 3))
            shown = ", ".join(_moment(turn) for turn in turns if turn is not None)
        else:
            shown = f"every {schedule}"
        rows.append((f"`{text}`", shown))
    return table(("written", f"comes round, seen from {NOW:%A %Y-%m-%d %H:%M} on (UTC)"), rows)


def _moment(turn: datetime) -> str:
    return f"{turn:%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def _clocks() -> str:
    """The fires of some hours in which clocks are changed, as clocks on the wall show them."""
    from docs.generate import table

    rows = [(f"`{line}`", _fires(line, *SKIPPED), _fires(line, *REPEATED)) for line in CLOCKS]
    return table(("line", "2:00 to 3:00 is skipped", "2:00 to 3:00 comes twice"), rows)


def _fires(line: str, zone: str, night: datetime) -> str:
    cron, moment, shown = Cron(line, zone), night - timedelta(minutes=1), []
    while (fire := cron.fires_after(moment)) is not None and fire < night + timedelta(hours=2):
        shown.append(f"{fire.astimezone(ZoneInfo(zone)):%H:%M}")
        moment = fire
    return ", ".join(shown)


def _retries() -> str:
    """One row a branch of errors: the first wait, the longest, and how many failures suspend."""
    from docs.generate import table

    rows = []
    for branch in BRANCHES:
        rule = backoff(branch)
        times = {None: "never", 1: "`max_failures`"}.get(
            rule.patience, f"{rule.patience} × `max_failures`"
        )
        rows.append((branch.__name__, duration(rule.first), duration(rule.longest), times))
    return table(("errors", "first wait, at most", "longest wait", "suspended after"), rows)
