"""The parts of one open project, wired once, and the steps that contain every durable act."""

from headrace.engine.engine import (
    HOME,
    Engine,
    Progress,
    Recovery,
    Watch,
    no_progress,
    nobody_watches,
    this_process,
)

__all__ = [
    "HOME",
    "Engine",
    "Progress",
    "Recovery",
    "Watch",
    "no_progress",
    "nobody_watches",
    "this_process",
]
