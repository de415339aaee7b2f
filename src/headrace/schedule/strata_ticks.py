"""Ticks by strata: in which of them tables are refreshed, and which are skipped. Pure.

A tick is all that follows one cut: refreshes from the lowest stratum up to the one above which no
reader sees a change. It ends with the next cut, or when nothing is left to start.

| a stratum of which, in the tick, | is |
|---|---|
| a table was refreshed | refreshed |
| a table lacks a change, or reads one that does, and waits | neither |
| no change comes into any table | skipped: nothing was looked up and nothing computed for it |
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from datetime import datetime

from headrace.catalog.records import StratumTicks


@dataclass
class TickCounter:
    """The strata refreshed in this tick, and the ticks counted since they were last taken."""

    refreshed: set[int] = field(default_factory=set)
    counted: dict[int, StratumTicks] = field(default_factory=dict)

    def started(self, strata: Iterable[int]) -> None:
        """Note that refreshes of tables of these strata were started."""
        self.refreshed.update(strata)

    def end(self, strata: Set[int], waiting: Set[int], now: datetime) -> frozenset[int]:
        """End the tick, and count it if anything was started; return the strata it skipped."""
        if not self.refreshed:
            return frozenset()
        skipped = frozenset(strata - self.refreshed - waiting)
        for stratum in strata:
            idle = stratum in skipped
            tick = StratumTicks(stratum, int(stratum in self.refreshed), int(idle), idle, now)
            ticks_so_far = self.counted.get(stratum)
            self.counted[stratum] = tick if ticks_so_far is None else ticks_so_far.then(tick)
        self.refreshed.clear()
        return skipped

    def take(self) -> tuple[StratumTicks, ...]:
        """Return the ticks counted since the last call."""
        counted = tuple(self.counted.values())
        self.counted.clear()
        return counted
