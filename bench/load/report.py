"""Figures of a load judged: which rates were kept up with, and a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# A rate is kept up with while 95 % of the marks are served within so many milliseconds.
BOUND_MS = 2000
# The part of a rate that has to be written for it to count.
ENOUGH = 0.95

Rate = Mapping[str, Any]


def achieves(achieved: float, rate: float) -> bool:
    """Return whether the writers achieved a rate."""
    return achieved >= ENOUGH * rate


def within(lag: Mapping[str, Any]) -> bool:
    """Return whether a lag is below the bound at the 95th percentile, and no mark is missing."""
    return not lag["unserved"] and lag["p95"] is not None and lag["p95"] < BOUND_MS


def highest_rates(rates: Sequence[Rate]) -> dict[str, Any]:
    """Return the highest rates that were achieved with a lag below the bound; None if none was.

    `all` takes the marks of all tables together, `each` asks it of every table by itself.
    """
    fine = [rate for rate in rates if rate["achieved"] and not rate["failures"]]
    tables = sorted({name for rate in rates for name in rate["lag_ms_by_table"]})
    by_table = {
        name: _highest(rate for rate in fine if within(rate["lag_ms_by_table"][name]))
        for name in tables
    }
    each = (rate for rate in fine if all(map(within, rate["lag_ms_by_table"].values())))
    return {
        "all": _highest(rate for rate in fine if within(rate["lag_ms"])),
        "each": _highest(each),
        "by_table": by_table,
    }


def _highest(rates: Iterable[Rate]) -> int | None:
    return max((int(rate["rate"]) for rate in rates), default=None)


def line(rate: Rate) -> str:
    """Return what was seen at a rate as one line."""
    lag, used = rate["lag_ms"], rate["cpu_seconds"]
    parts = [
        f"{rate['rate']} changes/s",
        f"{rate['achieved_rate']:g} achieved{'' if rate['achieved'] else ', not the rate'}",
        f"lag p50 {lag['p50']} p95 {lag['p95']} p99 {lag['p99']} ms",
        "CPU s " + ", ".join(f"{name} {seconds:g}" for name, seconds in used.items()),
    ]
    if rate["taken_in_per_second"] is not None:
        parts.insert(2, f"{rate['taken_in_per_second']:g} taken in")
    if lag["unserved"]:
        parts.append(f"{lag['unserved']} marks not served")
    return "; ".join([*parts, *rate["failures"]])
