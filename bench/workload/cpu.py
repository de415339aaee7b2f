"""CPU seconds of the processes of a project."""

from __future__ import annotations

import os

import psutil


def cpu_seconds() -> float:
    """Return what this process and those below it, such as the JVM, have used so far.

    PostgreSQL is not among them: its server is nobody's child.
    """
    me = psutil.Process(os.getpid())
    used = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        used += times.user + times.system
    return used
