"""Figures of processes, from /proc."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below one."""
    with suppress(*GONE):
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, listed.read_text().split()):
                yield child
                yield from descendants(child)


def name_of(pid: int) -> str:
    with suppress(*GONE):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def java_below(pid: int) -> list[int]:
    return [child for child in descendants(pid) if name_of(child) == "java"]


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    with suppress(*GONE):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def resident_mb(pid: int) -> float | None:
    with suppress(*GONE):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return round(int(line.split()[1]) / 1024, 1)
    return None


def descriptors(pid: int) -> int | None:
    with suppress(*GONE):
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return None


def threads(pid: int) -> int | None:
    with suppress(*GONE):
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    return None


def old_generation_mb(pid: int) -> float | None:
    """Return what a JVM's old generation holds, where the JDK's jstat is installed."""
    jstat = shutil.which("jstat")
    if jstat is None:
        return None
    done = subprocess.run([jstat, "-gc", str(pid)], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) < 2:
        return None
    figures = dict(zip(lines[0].split(), lines[1].split(), strict=False))
    return round(float(figures["OU"]) / 1024, 1) if "OU" in figures else None
