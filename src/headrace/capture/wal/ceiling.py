"""How much of the log a slot may hold back before somebody has to know, or it lets go (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["fine", "warning", "critical"]
# From the best to the worst.
LEVELS: tuple[Level, ...] = ("fine", "warning", "critical")

# Near the server's own limit there may be no second chance to tell.
SAFE_SHARE = 0.2


@dataclass(frozen=True)
class Ceiling:
    """Bytes of log behind the slot: from `warning` on we tell, from `critical` on we let go."""

    warning: int
    critical: int

    def level(self, lag: int, safe: int | None = None) -> Level:
        """Where a slot stands. `safe` is what the server still lets it hold back, if it limits.

        A server that is about to invalidate the slot is a warning whatever our own limits say.
        """
        if lag >= self.critical:
            return "critical"
        if lag >= self.warning or (safe is not None and safe <= (lag + safe) * SAFE_SHARE):
            return "warning"
        return "fine"
