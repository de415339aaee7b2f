"""The advisory locks of the home database."""

from __future__ import annotations

# Advisory locks of all applications share one space of numbers: "head" in ASCII marks ours.
SPACE = 0x68656164

# The number of the writer's lock is in table headrace.lease; WRITER is the first.
WRITER = (SPACE, 1)
MIGRATION = (SPACE, 2)
# Numbers from this range replace the number of the writer's lock when a stranger holds the lock.
FIRST_CHOSEN, LAST_CHOSEN = 1 << 16, (1 << 31) - 1
