"""What a soak has seen, judged, and made ready for JSON."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.soak.blame import Failure, Wait, Window, long_waits, unexplained
from bench.soak.bounds import Sample, bounds
from bench.soak.check import Check
from bench.soak.daemon import Exit
from bench.soak.options import Options
from bench.soak.shop import STREAM_TABLES
from headrace.errors import Transient, Unavailable

# Exit codes of a daemon that finds its server away when it starts; a service manager repeats that.
SERVER_AWAY = frozenset({Transient.exit_code, Unavailable.exit_code})
# Entries of a list in the result, at most.
SHOWN = 50


@dataclass
class Occurrence:
    """A fault that happened, and the seconds until everything went on; None: others came first."""

    at: float
    kind: str
    what: str
    took: float
    operator: str | None = None
    recovered: float | None = None


@dataclass
class Seen:
    """All observations of a soak."""

    events: list[Occurrence] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    samples: Sequence[Sample] = ()
    windows: Sequence[Window] = ()
    statements: int = 0
    slow: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    slowest: float = 0.0
    failures: Sequence[Failure] = ()
    waits: Sequence[Wait] = ()
    waits_for_others: int = 0
    snapshots: int = 0
    wrong_snapshots: Sequence[tuple[float, str]] = ()
    starts: int = 0
    exits: Sequence[Exit] = ()
    left_behind: Sequence[int] = ()
    log_end: Sequence[str] = ()
    refreshes: Mapping[str, int] = field(default_factory=dict)


def outcome(options: Options, seen: Seen, calm_from: float) -> dict[str, Any]:
    """Return the result of a soak; `ok` if all bounds were kept."""
    failures = unexplained(seen.failures, seen.windows)
    waits = long_waits(seen.waits, seen.slow)
    judged = bounds(_counts(seen, failures, waits), seen.samples, calm_from)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hours": options.hours,
        "mode": options.mode,
        "seed": options.seed,
        "cores": os.cpu_count(),
        "stream_tables": len(STREAM_TABLES),
        "calm_from_s": calm_from,
        "ok": all(one.kept for one in judged),
        "bounds": [one.document() for one in judged],
        "statements": {
            "count": seen.statements,
            "failed_with_the_server": len(seen.failures) - len(failures),
            "failed_because_of_headrace": [asdict(one) for one in failures[:SHOWN]],
            "waited_over_1_s_for_headrace": [asdict(one) for one in waits[:SHOWN]],
            "lock_waits_for_others": seen.waits_for_others,
            "over_1_s_for_any_reason": sum(map(len, seen.slow.values())),
            "slowest_s": round(seen.slowest, 2),
        },
        "reader": {"snapshots": seen.snapshots, "wrong": list(seen.wrong_snapshots[:SHOWN])},
        "refreshes": dict(seen.refreshes),
        "daemon": {
            "starts": seen.starts,
            "exits": [asdict(one) for one in seen.exits],
            "unexpected_exits": [asdict(one) for one in unexpected(seen.exits, seen.windows)],
            "log_end": list(seen.log_end),
            "left_behind": list(seen.left_behind),
        },
        "checks": [asdict(one) for one in seen.checks],
        "events": [asdict(one) for one in seen.events],
        "failed": seen.failed,
        "operator_commands": sorted({one.operator for one in seen.events if one.operator}),
        "samples": list(seen.samples),
    }


def _counts(seen: Seen, failures: Sequence[Failure], waits: Sequence[Wait]) -> dict[str, int]:
    """Everything that must not occur, with how often it did."""
    return {
        "differences": sum(len(one.differences) for one in seen.checks),
        "checkpoints that did not settle": sum(one.settled is None for one in seen.checks),
        "tables not active at checkpoints": sum(len(one.inactive) for one in seen.checks),
        "buffered rows left at checkpoints": sum(one.buffer_rows for one in seen.checks),
        "snapshots that made no sense": len(seen.wrong_snapshots),
        "statements failed because of Headrace": len(failures),
        "statements that waited over 1 s for Headrace": len(waits),
        "exits of the daemon by itself": len(unexpected(seen.exits, seen.windows)),
        "processes left behind": len(seen.left_behind),
        "faults or answers to them that failed": len(seen.failed),
    }


def unexpected(exits: Iterable[Exit], windows: Sequence[Window]) -> list[Exit]:
    """Return the exits that neither the soak nor a server that is away explains.

    A daemon that has served connects again when its server is back, so it never ends by itself. One
    that starts ends with a documented exit code if the server is away at any time before it serves.
    """

    def explained(one: Exit) -> bool:
        if not one.serving and one.code in SERVER_AWAY and one.cause != "did not stop":
            return any(window.overlaps(one.started, one.at) for window in windows)
        match one.cause:
            case "killed":
                return one.code == -signal.SIGKILL
            case "stopped":
                return one.code == 0
            case "stopped at once":
                return one.code == 0 or (one.code == -signal.SIGTERM and not one.serving)
        return False

    return [one for one in exits if not explained(one)]
