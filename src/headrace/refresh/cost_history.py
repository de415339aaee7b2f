"""What past refreshes of each table took, in memory, and what they predict for the next."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.catalog import Catalog
from headrace.catalog.records import Effort, Refresh, RefreshMode
from headrace.refresh.strategy import (
    FEW_ROWS,
    MARGIN,
    REMEMBERED,
    Point,
    RefreshCosts,
    first_share,
    full_seconds,
    incremental_points,
    incremental_seconds,
)


def past_of(catalog: Catalog, relation: str) -> RefreshCosts:
    """Return the costs of a table that the history has."""
    return RefreshCosts.of(catalog.efforts(relation, REMEMBERED))


class CostHistory:
    """Costs by relation: read from the history when they are first needed, then kept up."""

    def __init__(self) -> None:
        self._known: dict[str, RefreshCosts] = {}
        self._turn = threading.Lock()

    def of(self, catalog: Catalog, relation: str) -> RefreshCosts:
        """Return the past costs of a table."""
        with self._turn:
            costs = self._known.get(relation)
        if costs is not None:
            return costs
        # Nobody else refreshes the table meanwhile; the catalog is not queried under our lock.
        recorded = past_of(catalog, relation)
        with self._turn:
            return self._known.setdefault(relation, recorded)

    def add(self, refreshes: Iterable[Refresh]) -> None:
        """Add published refreshes to the costs that are in memory."""
        with self._turn:
            for line in refreshes:
                past = self._known.get(line.table)
                if past is not None and line.effort is not None:
                    self._known[line.table] = past.then(line.mode, line.effort)


@dataclass(frozen=True)
class Outlook:
    """How the next refresh is chosen if all inputs change, which have so many stored rows.

    `full` is what a recompute is likely to take, None if that is not known; `incremental` what
    refreshes took that followed so many changed rows. With more than `most_rows` of them the next
    one is full; None: however many there are, it is not.
    """

    mode: RefreshMode
    stored: int
    full: float | None
    incremental: tuple[Point, ...]
    most_rows: int | None

    def lines(self) -> Iterator[str]:
        """Yield the outlook in words."""
        if self.mode is not RefreshMode.AUTO:
            way = "full" if self.mode is RefreshMode.FULL else "incremental"
            yield f"always {way}: refresh_mode is {self.mode}"
            return
        if self.stored <= FEW_ROWS:
            yield f"incremental: its inputs have no more than {FEW_ROWS:,} stored rows"
            return
        if self.full is None:
            yield "no recompute over about as many rows is known"
        else:
            yield f"full takes about {self.full:.2f} s, over {self.stored:,} stored rows"
        if not self.incremental:
            yield "no incremental refresh is known"
        for rows, seconds in self.incremental:
            yield f"incremental took about {seconds:.2f} s for {rows:,.0f} changed rows"
        if self.most_rows is None:
            yield "incremental, however many rows change"
        else:
            yield f"full beyond about {self.most_rows:,} changed rows"


def outlook(mode: RefreshMode, inputs: frozenset[str], stored: int, past: RefreshCosts) -> Outlook:
    """Return what past costs predict for changes of these inputs."""
    full = full_seconds(stored, past)
    points = incremental_points(inputs, past)
    return Outlook(mode, stored, full, points, _most_rows(mode, inputs, stored, past, full))


def _most_rows(
    mode: RefreshMode, inputs: frozenset[str], stored: int, past: RefreshCosts, full: float | None
) -> int | None:
    if mode is not RefreshMode.AUTO or stored <= FEW_ROWS:
        return None
    if full is None:
        return int(first_share(len(inputs)) * stored)

    def is_cheaper(rows: int) -> bool:
        changed = {**dict.fromkeys(inputs, 0), min(inputs): rows}
        return incremental_seconds(Effort(changed, stored), past, full) <= MARGIN * full

    # Expected costs rise with the rows; an update of every row is two for each.
    low, high = 0, 2 * stored
    if is_cheaper(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_cheaper(middle) else (low, middle)
    return low
