"""Taking in cuts: when there is something new, and again later when that failed.

Sources that stand still, such as one that was busy when it had to be copied, are tried again.
"""

from __future__ import annotations

import time
from datetime import timedelta

from headrace.catalog import State
from headrace.catalog.records import Status
from headrace.engine import HOME
from headrace.errors import HeadraceError, NeedsReinit
from headrace.ingest.ingest import ingest
from headrace.relations.compact import compact
from headrace.schedule.retry import after_failure
from headrace.schedule.shift import ENDING, Shift

NEVER_SUSPENDED = 1 << 30


class Intake:
    """Ingests for a daemon, in the daemon's own thread."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._failures = 0
        self._not_before = 0.0
        self._stalls = 0
        self._stalled_until = 0.0

    def take(self, state: State, *, thorough: bool) -> bool:
        """Take in a cut if anything is new; whether there is one now that was not.

        Without `thorough` only the buffers are looked into.
        """
        if not state.sources or time.monotonic() < self._not_before:
            return False
        if not thorough and not self._has_news(state):
            return False
        shift = self._shift
        try:
            after = ingest(shift.engine, state, shift.lease.fence)
            if thorough:
                after = self._try_stopped(after)
            moved = [
                source.relation
                for source in state.sources
                if after.relation(source.relation).pin != state.relation(source.relation).pin
            ]
            if moved:
                compact(shift.engine, moved, shift.lease.fence)
        except HeadraceError as error:
            if error.code in ENDING:
                raise
            self._put_off(state, error)
            return True
        self._failures = 0
        return after is not state

    def _try_stopped(self, state: State) -> State:
        """Take in a cut with the sources that stand still, from time to time."""
        stopped = {one.relation for one in state.sources if one.status is Status.SUSPENDED}
        waiting = {
            name
            for table in state.stream_tables
            if not table.held
            for name in stopped.intersection(table.inputs)
        }
        if not waiting:
            self._stalls, self._stalled_until = 0, 0.0
            return state
        if time.monotonic() < self._stalled_until:
            return state
        shift = self._shift
        kind: type[HeadraceError] = NeedsReinit
        try:
            after = ingest(shift.engine, state, shift.lease.fence, retry=frozenset(waiting))
        except HeadraceError as error:
            if error.code in ENDING:
                raise
            kind = type(error)
            shift.engine.roll_back((one.relation for one in state.sources), shift.lease.fence)
            shift.failed("copying anew", error)
            after = shift.engine.catalog.state()
        self._stalls += 1
        wait = after_failure(kind, self._stalls, NEVER_SUSPENDED, shift.random)
        self._stalled_until = time.monotonic() + (wait or timedelta()).total_seconds()
        return after

    def _has_news(self, state: State) -> bool:
        snapshot = state.database(HOME).snapshot
        active = [source.oid for source in state.sources if source.status is Status.ACTIVE]
        if snapshot is None:
            return True
        return bool(active) and self._shift.ears.news(active, snapshot)

    def _put_off(self, state: State, error: HeadraceError) -> None:
        """Try again later; what was written beyond the pins goes."""
        shift = self._shift
        self._failures += 1
        wait = after_failure(type(error), self._failures, NEVER_SUSPENDED, shift.random)
        self._not_before = time.monotonic() + (wait or timedelta()).total_seconds()
        shift.engine.roll_back((source.relation for source in state.sources), shift.lease.fence)
        shift.failed("taking in changes", error)
