"""The measurements of one run of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from headrace.demo.shop import Shop
from headrace.demo.trade import TradeTotals
from headrace.demo.views import ChangedRow, DemoView

if TYPE_CHECKING:
    from headrace.catalog.records import Receipt, Refresh


@dataclass(frozen=True)
class Opened:
    """The shop is filled; nothing is captured yet."""

    shop: Shop
    seconds: float


@dataclass(frozen=True)
class Created:
    """A stream table was made and filled; the first one also started Spark and copied sources."""

    view: DemoView
    rows: int
    seconds: float


@dataclass(frozen=True)
class Timed:
    """One refresh, its wall-clock time, and rows of the served table that it changed."""

    view: DemoView
    refresh: Refresh
    seconds: float
    samples: tuple[ChangedRow, ...] = ()


@dataclass(frozen=True)
class Round:
    """One refresh of every table, and the shop's writes since the round before."""

    number: int
    at: float
    written: TradeTotals
    timed: tuple[Timed, ...]


@dataclass(frozen=True)
class Pair:
    """The same change taken in by a refresh, and the table computed in full right after it."""

    refresh: Timed
    full: Timed


@dataclass(frozen=True)
class Checked:
    view: DemoView
    receipt: Receipt
    seconds: float


Event = Opened | Created | Round


@dataclass(frozen=True)
class Outcome:
    """The whole run. `idle` are refreshes without changes, `pairs` incremental and full ones."""

    opened: Opened
    created: tuple[Created, ...]
    rounds: tuple[Round, ...]
    idle: tuple[Timed, ...]
    pairs: tuple[Pair, ...]
    checked: tuple[Checked, ...]
    seconds: float

    @property
    def equal(self) -> bool:
        return all(checked.receipt.equal for checked in self.checked)

    @property
    def written(self) -> TradeTotals:
        return sum((round_.written for round_ in self.rounds), TradeTotals())

    @property
    def views(self) -> tuple[DemoView, ...]:
        return tuple(created.view for created in self.created)

    def live(self, view: DemoView) -> tuple[Timed, ...]:
        """Return the incremental refreshes of a table while the shop was open."""
        every = (timed for round_ in self.rounds for timed in round_.timed if timed.view == view)
        return tuple(timed for timed in every if timed.refresh.mode == "DIFFERENTIAL")

    def pairs_of(self, view: DemoView) -> tuple[Pair, ...]:
        """Return the pairs of a table in which the first refresh was incremental."""
        every = (pair for pair in self.pairs if pair.full.view == view)
        return tuple(pair for pair in every if pair.refresh.refresh.mode == "DIFFERENTIAL")

    def ratio(self, view: DemoView) -> float | None:
        """Return how many times as long computing in full took, by the medians of the pairs."""
        pairs = self.pairs_of(view)
        fast, full = middle([pair.refresh for pair in pairs]), middle([pair.full for pair in pairs])
        return full / fast if fast and full else None


def middle(timed: Sequence[Timed]) -> float | None:
    """Return the median of the times."""
    return median(timed.seconds for timed in timed) if timed else None


def phases(timed: Sequence[Timed]) -> dict[str, float]:
    """Return the median of every phase, in the order in which phases came."""
    names = dict.fromkeys(name for timed in timed for name in timed.refresh.phases)
    return {name: median(timed.refresh.phases.get(name, 0.0) for timed in timed) for name in names}
