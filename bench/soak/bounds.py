"""What must hold over a whole soak: its figures against their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

MB = 1 << 20
Sample = Mapping[str, float | None]

# The most that any sample may show.
MOST: dict[str, float] = {
    "daemon_rss_mb": 1024,
    "jvm_rss_mb": 3584,
    "jvm_old_mb": 2048,
    "daemon_descriptors": 512,
    "jvm_descriptors": 1024,
    "daemon_threads": 128,
    "sessions": 60,
    "store_files": 20_000,
    "store_mb": 1024,
    "home_files": 2000,
    "temporary_folders": 20,
    "slot_wal_mb": 1024,
    "buffer_mb": 256,
    "catalog_mb": 256,
}
# The most by which the calm last third may end above its beginning: a part of it, and so much more.
GROWTH: dict[str, tuple[float, float]] = {
    "daemon_rss_mb": (0.15, 30),
    "jvm_old_mb": (0.25, 100),
    "daemon_descriptors": (0.1, 20),
    "jvm_descriptors": (0.1, 40),
    "daemon_threads": (0.1, 10),
    "sessions": (0.2, 10),
    "store_files": (0.3, 300),
    "store_mb": (0.3, 50),
    "home_files": (0.1, 20),
}
# The most by which these may grow in an hour.
HOURLY: dict[str, float] = {"headrace_log_mb": 50, "spark_log_mb": 200, "catalog_mb": 100}
# The least seconds of a calm part that growth is judged by: a JVM needs some to warm up.
LEAST_CALM = 600.0
LEAST_HOURLY = 1800.0


@dataclass(frozen=True)
class Bound:
    """One figure, its limit, and whether it kept to it."""

    name: str
    seen: float
    limit: float

    @property
    def kept(self) -> bool:
        return self.seen <= self.limit

    def document(self) -> dict[str, Any]:
        return {"name": self.name, "seen": self.seen, "limit": self.limit, "kept": self.kept}


def bounds(
    counts: Mapping[str, int], samples: Sequence[Sample], calm_from: float
) -> tuple[Bound, ...]:
    """Judge a soak: counts that must be zero, and samples with their time `at` in seconds."""
    calm = [sample for sample in samples if (sample["at"] or 0) >= calm_from]
    return (
        *(Bound(name, count, 0) for name, count in counts.items()),
        *_most(samples),
        *_growth(calm),
        *_hourly(samples),
    )


def _values(samples: Sequence[Sample], name: str) -> list[tuple[float, float]]:
    """Times and values of a figure, where it was measured."""
    found = ((sample["at"], sample.get(name)) for sample in samples)
    return [(at, value) for at, value in found if at is not None and value is not None]


def _most(samples: Sequence[Sample]) -> list[Bound]:
    values = {name: _values(samples, name) for name in MOST}
    return [
        Bound(f"most {name}", max(value for _, value in values[name]), limit)
        for name, limit in MOST.items()
        if values[name]
    ]


def _growth(calm: Sequence[Sample]) -> list[Bound]:
    """The median of the last third of the calm part against that of its second third.

    In its first third processes warm up.
    """
    found = []
    for name, (part, more) in GROWTH.items():
        values = _values(calm, name)
        third = len(values) // 3
        if third == 0 or values[-1][0] - values[0][0] < LEAST_CALM:
            continue
        before = median(value for _, value in values[third : 2 * third])
        after = median(value for _, value in values[2 * third :])
        limit = round(before * part + more, 1)
        found.append(Bound(f"growth of {name}", round(after - before, 1), limit))
    return found


def _hourly(samples: Sequence[Sample]) -> list[Bound]:
    found = []
    for name, limit in HOURLY.items():
        values = _values(samples, name)
        if not values or values[-1][0] - values[0][0] < LEAST_HOURLY:
            continue
        hours = (values[-1][0] - values[0][0]) / 3600
        grown = values[-1][1] - values[0][1]
        found.append(Bound(f"{name} an hour", round(grown / hours, 1), limit))
    return found
