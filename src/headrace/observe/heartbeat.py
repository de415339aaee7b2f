"""Whether the daemon that has the lease is alive, judged by its heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from headrace.catalog.records import Heartbeat

# A daemon writes its heartbeat every five seconds, and begins a round at least as often.
SILENCE = timedelta(minutes=1)
# The number of reads of a heartbeat that seems to have stopped, and the seconds between them: a
# machine or process that was paused goes on within that time.
LOOKS, PAUSE = 12, 1.0


def watched(
    read: Callable[[], Heartbeat | None], sleep: Callable[[float], None] = time.sleep
) -> Heartbeat | None:
    """Return the heartbeat; one that seems to have stopped is watched for some seconds first."""
    heartbeat = read()
    for _ in range(LOOKS):
        if heartbeat is None or not (is_silent(heartbeat) or is_stuck(heartbeat)):
            break
        sleep(PAUSE)
        heartbeat = read()
    return heartbeat


def is_silent(heartbeat: Heartbeat) -> bool:
    """Return whether the whole process does not run."""
    return heartbeat.age > SILENCE


def is_stuck(heartbeat: Heartbeat) -> bool:
    """Return whether the loop does not go on, although no work keeps it busy."""
    return heartbeat.busy is None and heartbeat.in_round > SILENCE
