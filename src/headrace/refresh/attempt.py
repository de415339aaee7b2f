"""One attempt to bring a table to an epoch, its phases by time, and its line of the history."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from headrace.catalog.records import Effort, Refresh, StageRun, StreamTable
from headrace.errors import HeadraceError
from headrace.refresh.plan import Decision


@dataclass
class Clock:
    """Seconds by phase, in the order in which the phases first came, and what the stages did."""

    phases: dict[str, float] = field(default_factory=dict)
    stages: list[StageRun] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - started


# Phases that take the same time in either mode, because the visible change is the same.
EITHER_WAY = frozenset({"cut", "publish"})


@dataclass(frozen=True)
class RefreshAttempt:
    """One attempt to refresh a table: its decision, since when, and where the time went.

    `group` has the relations of all tables that are refreshed as one with it, none if it is alone;
    `effort` what is known before it.
    """

    table: StreamTable
    epoch: int
    decision: Decision
    clock: Clock = field(default_factory=Clock)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    strata_skipped: int = 0
    group: tuple[str, ...] = ()
    effort: Effort | None = None

    def record(self, jobs: int = 0, error: str | None = None) -> Refresh:
        """Return the line for the history."""
        rounds = [run.iterations for run in self.clock.stages if run.iterations is not None]
        return Refresh(
            self.table.relation,
            self.epoch,
            self.decision.mode,
            self.decision.recorded_reason,
            rows_inserted=0,
            rows_deleted=0,
            phases=dict(self.clock.phases),
            spark_jobs=jobs,
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            stages=tuple(self.clock.stages),
            iterations=max(rounds, default=None),
            strata_skipped=self.strata_skipped,
            group=self.group,
            error=error,
            effort=self._taken(),
        )

    def _taken(self) -> Effort | None:
        """Return the effort with the seconds that depend on the mode; None if no stage ran.

        A change in columns that are not read does not predict others.
        """
        if self.effort is None or not self.clock.stages:
            return None
        phases = self.clock.phases.items()
        seconds = sum(spent for name, spent in phases if name not in EITHER_WAY)
        return replace(self.effort, seconds=seconds)


def recorded_error(error: HeadraceError) -> str:
    """Return an error as the history keeps it."""
    return f"{error.code}: {error.message}"
