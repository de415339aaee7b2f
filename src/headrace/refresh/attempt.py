"""One try at bringing a table to an epoch, and what the history tells of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from headrace.catalog.records import Refresh, StreamTable
from headrace.errors import HeadraceError
from headrace.refresh.clock import Clock
from headrace.refresh.plan import Decision


@dataclass(frozen=True)
class Attempt:
    """Which way a table is refreshed, since when, and where the time went.

    `group` has the relations of all tables that are refreshed as one with it, none if it is alone.
    """

    table: StreamTable
    epoch: int
    decision: Decision
    clock: Clock = field(default_factory=Clock)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    strata_skipped: int = 0
    group: tuple[str, ...] = ()

    def record(self, jobs: int = 0, error: str | None = None) -> Refresh:
        """The line for the history."""
        rounds = [run.iterations for run in self.clock.stages if run.iterations is not None]
        return Refresh(
            self.table.relation,
            self.epoch,
            self.decision.mode,
            self.decision.reason,
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
        )


def told(error: HeadraceError) -> str:
    """An error as the history keeps it."""
    return f"{error.code}: {error.message}"
