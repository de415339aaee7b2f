"""When this process last tried to change how sources are captured, so that attempts are rare."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class CaptureAttempts:
    """Times of the process's clock, by relation of a source or number of a database.

    `followed_at` has when a source was last checked for reading it from the WAL, `torn_down_at`
    when removing triggers that are no longer needed was last tried. `adapted` has the settings and
    sources that the buffers of a database were last converted to, and the time of the next retry.
    """

    followed_at: dict[str, float] = field(default_factory=dict)
    torn_down_at: dict[str, float] = field(default_factory=dict)
    adapted: dict[int, tuple[object, float]] = field(default_factory=dict)
