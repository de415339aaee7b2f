"""The advisory locks of the home database."""

from __future__ import annotations

# Advisory locks of all applications share one space of numbers: "head" in ASCII marks ours.
SPACE = 0x68656164

# The writer's number is in table headrace.lease; this is the first.
WRITER = (SPACE, 1)
MIGRATION = (SPACE, 2)
# Numbers from here on are the writer's, too.
FIRST_CHOSEN, LAST_CHOSEN = 1 << 16, (1 << 31) - 1
