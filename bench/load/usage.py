"""CPU seconds of trees of processes, from /proc."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from bench.daemon import cpu_seconds
from bench.soak.processes import GONE, descendants
from headrace.embedded.cluster import ClusterPaths


def used(pids: Iterable[int]) -> float:
    """Return the CPU seconds of processes, with their children that have ended."""
    total = 0.0
    for pid in pids:
        with suppress(*GONE):
            total += cpu_seconds(pid)
    return total


def below(pid: int) -> list[int]:
    """Return a process and all below it."""
    return [pid, *descendants(pid)]


def server_pid(home: Path) -> int:
    """Return the first process of the embedded server of a home folder."""
    return int(json.loads(ClusterPaths(home).server_lock.read_text())["pid"])


def usage(home: Path, writers: int, daemon: int | None) -> dict[str, float]:
    """Return the CPU seconds so far by group of processes.

    The JVM is counted with the Python workers of its executors, PostgreSQL with all its sessions.
    """
    found = {
        "postgres": used(below(server_pid(home))),
        "writers": used([writers]),
        "observers": time.process_time(),
    }
    if daemon is not None:
        found |= {"python": used([daemon]), "jvm": used(descendants(daemon))}
    return found


def spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the CPU seconds between two readings."""
    return {name: round(after[name] - before[name], 1) for name in sorted(after)}


def cores() -> int:
    return len(os.sched_getaffinity(0))
