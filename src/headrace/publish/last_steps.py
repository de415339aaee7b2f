"""The steps of a publish that lock readers out of served tables, which come last in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class LastSteps:
    """Steps left to the end of a transaction, when all other rows of all tables are written.

    Readers wait for the locks of these steps until the transaction is committed.
    """

    attaching: list[Callable[[], None]] = field(default_factory=list)
    dropping: list[Callable[[], None]] = field(default_factory=list)

    def perform(self) -> None:
        """Attach partitions with their rows first, then drop those that are empty."""
        for step in (*self.attaching, *self.dropping):
            step()
