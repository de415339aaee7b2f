"""The advisory locks of the home database."""

from __future__ import annotations

# Advisory locks of all applications share one space of numbers: "head" in ASCII marks ours.
_SPACE = 0x68656164

WRITER = (_SPACE, 1)
MIGRATION = (_SPACE, 2)
