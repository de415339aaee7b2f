"""Choose incremental or full: estimate what either takes, from past refreshes. Pure.

    full(stored)       the latest recomputes, in proportion to the rows that their inputs had
    incremental(rows)  a rising line through the latest refreshes with about so many changed rows;
                       beyond the largest in proportion, or by a slope that is guessed from the
                       recompute where that is less

A guess is low rather than high: a mode with too low a guess is tried once, and its cost is known
from then on; a mode with too high a guess would never be tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Literal, TypeAlias

from headrace.catalog.records import Effort

# So many refreshes of each mode are remembered; the latest so many of about one size count.
REMEMBERED = 64
LATEST = 5

# Up to so many stored rows, either mode takes as long as starting a query.
FEW_ROWS = 10_000

# Full is taken if incremental is likely to take so many times as long.
MARGIN = 1.1

# The seconds that do not grow with the rows, where only one size is known.
STARTING = 0.3

# A recompute over so many times more or fewer rows does not predict this one.
COMPARABLE = 8

# The time of a refresh while Spark was warming up counts for this part of it.
WARMING_UP = 0.5

# After so many refreshes in the other mode, a mode is expected to take less than it last took, and
# after twice as many half of that: so a trial costs a few per cent of what those refreshes took. A
# recompute is never expected to take less than half: a large one is not tried for a small gain. An
# incremental refresh of so many rows is tried sooner if its cost was only guessed.
PATIENCE = 20
PATIENCE_WITH_GUESSES = 4
LEAST_EXPECTED_SHARE = 0.5

INCREMENTAL = "every stage is maintained incrementally"
INCREMENTAL_AGAIN = "an incremental refresh may be cheaper by now"
CHEAPER = "a full recompute is likely cheaper"
FULL_AGAIN = "a full recompute may be cheaper by now"
MANY_ROWS = "a full recompute is likely cheaper, though none is known"

Way: TypeAlias = Literal["DIFFERENTIAL", "FULL"]
Point: TypeAlias = tuple[float, float]
"""So many changed rows took so many seconds."""


@dataclass(frozen=True)
class RefreshCosts:
    """What refreshes of a table took, with their modes, newest first."""

    lines: tuple[tuple[str, Effort], ...] = ()

    @staticmethod
    def of(lines: Iterable[tuple[str, Effort]]) -> RefreshCosts:
        """Return the costs that count: since the table was made, the latest of each mode."""
        remembered: list[tuple[str, Effort]] = []
        left = {"FULL": REMEMBERED, "DIFFERENTIAL": REMEMBERED}
        for mode, effort in lines:
            if left[mode] > 0:
                left[mode] -= 1
                remembered.append((mode, effort))
            if effort.first:
                break
        return RefreshCosts(tuple(remembered))

    def then(self, mode: str, effort: Effort) -> RefreshCosts:
        """Return the costs with one more refresh."""
        return RefreshCosts.of(((mode, effort), *self.lines))

    def taken(self, way: Way) -> list[Effort]:
        """Return the refreshes of one mode, newest first."""
        return [effort for mode, effort in self.lines if mode == way]

    def hope(self, way: Way, rows: int = 0) -> float:
        """Return the part of a mode's known cost that it may take by now.

        The part shrinks with the number of refreshes in the other mode since.
        """
        waited, patience = 0, PATIENCE_WITH_GUESSES
        for mode, effort in self.lines:
            if 4 * effort.rows < 3 * rows:
                continue
            if mode == way:
                patience = PATIENCE
                break
            waited += 1
        return min(1.0, patience / max(waited, 1))


@dataclass(frozen=True)
class Choice:
    """The mode of a refresh and why, and what either mode is expected to take.

    `reason` is the same words every time, `numbers` those of this time.
    """

    mode: Way
    reason: str
    numbers: str = ""
    incremental: float | None = None
    full: float | None = None


def choose(ahead: Effort, past: RefreshCosts) -> Choice:
    """Return the mode of a refresh; `ahead` has what is known before it."""
    if ahead.stored <= FEW_ROWS:
        return Choice("DIFFERENTIAL", INCREMENTAL)
    of = f"for {ahead.rows:,} changed rows, with {ahead.stored:,} stored"
    full = full_seconds(ahead.stored, past)
    if full is None:
        if ahead.rows > first_share(len(ahead.changed)) * ahead.stored:
            return Choice("FULL", MANY_ROWS, of)
        return Choice("DIFFERENTIAL", INCREMENTAL)
    incremental = incremental_seconds(ahead, past, full)
    is_dearer = incremental > MARGIN * full
    hope = max(past.hope("FULL"), LEAST_EXPECTED_SHARE)
    if incremental * past.hope("DIFFERENTIAL", ahead.rows) > MARGIN * full * hope:
        numbers = f"about {full:.2f} s against {incremental:.2f} s incrementally, {of}"
        reason = CHEAPER if is_dearer else FULL_AGAIN
        return Choice("FULL", reason, numbers, incremental, full)
    numbers = f"about {incremental:.2f} s against {full:.2f} s in full, {of}"
    reason = INCREMENTAL_AGAIN if is_dearer else INCREMENTAL
    return Choice("DIFFERENTIAL", reason, numbers, incremental, full)


def first_share(changed: int) -> float:
    """Return the part of the stored rows beyond which full is taken while nothing is known."""
    return MARGIN / _terms(changed)


def full_seconds(stored: int, past: RefreshCosts) -> float | None:
    """Return what a recompute is likely to take over so many stored rows.

    None without a comparable recompute.
    """
    comparable = [
        effort
        for effort in past.taken("FULL")
        if effort.stored <= COMPARABLE * stored and stored <= COMPARABLE * effort.stored
    ]
    # The refresh that makes a table has nothing to compare with, and writes all of its rows.
    comparable = _trusted([effort for effort in comparable if not effort.first] or comparable)
    if not comparable:
        return None
    shares = (
        (effort.seconds, max(stored, 1) / max(effort.stored, 1)) for effort in comparable[:LATEST]
    )
    return _typical(_in_proportion(seconds, share) for seconds, share in shares)


def incremental_seconds(ahead: Effort, past: RefreshCosts, full: float) -> float:
    """Return what following the change is likely to take, where a recompute takes `full`."""
    rows, slope = max(ahead.rows, 1), _terms(len(ahead.changed)) * full / ahead.stored
    points = incremental_points(frozenset(ahead.changed), past)
    if not points:
        return slope * rows
    (fewest, least), (most, highest) = points[0], points[-1]
    if rows <= fewest:
        return _in_proportion(least, rows / fewest)
    if rows >= most:
        return highest + min(slope, highest / most) * (rows - most)
    return next(
        low + (high - low) * (rows - left) / (right - left)
        for (left, low), (right, high) in pairwise(points)
        if rows <= right
    )


def incremental_points(changed: frozenset[str], past: RefreshCosts) -> tuple[Point, ...]:
    """Return points through refreshes with changes of just these inputs, or if none, of any.

    One point for each size, in powers of two; with more rows never less.
    """
    every = past.taken("DIFFERENTIAL")
    efforts = _trusted([effort for effort in every if effort.changed.keys() == changed] or every)
    sizes: dict[int, list[Effort]] = {}
    for effort in efforts:
        same = sizes.setdefault(effort.rows.bit_length(), [])
        if len(same) < LATEST:
            same.append(effort)
    return _rising(
        [
            (
                median(max(effort.rows, 1) for effort in same),
                _typical(effort.seconds for effort in same),
            )
            for _, same in sorted(sizes.items())
        ]
    )


def _rising(points: list[Point]) -> tuple[Point, ...]:
    """Return the points with seconds that never fall: neighbours that do get their average."""
    levels: list[list[Point]] = []
    for point in points:
        level = [point]
        while levels and _level(levels[-1]) > _level(level):
            level = [*levels.pop(), *level]
        levels.append(level)
    return tuple((rows, _level(level)) for level in levels for rows, _ in level)


def _level(points: list[Point]) -> float:
    return sum(seconds for _, seconds in points) / len(points)


def _typical(seconds: Iterable[float]) -> float:
    """Return the typical duration: the upper end of the fastest third, as delays only add."""
    least = sorted(seconds)
    return least[(len(least) - 1) // 3]


def _trusted(seen: list[Effort]) -> list[Effort]:
    """Return the refreshes that Spark was warm for.

    If there are none, return all, with the seconds that they may take once it is warm.
    """
    warm = [effort for effort in seen if effort.warm]
    return warm or [replace(effort, seconds=effort.seconds * WARMING_UP) for effort in seen]


def _in_proportion(seconds: float, share: float) -> float:
    """Return the likely duration with `share` times as many rows."""
    fixed = min(seconds, STARTING)
    return fixed + (seconds - fixed) * share


def _terms(changed: int) -> int:
    """Return the cost of a change of all rows, in recomputes.

    The change of each input meets all other inputs.
    """
    return changed + 1
