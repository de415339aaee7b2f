"""Context of one lease term of the daemon, shared by all of its parts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from headrace.catalog.records import Lease
from headrace.daemon.monitor import Monitor
from headrace.daemon.wakeup import WakeupListener
from headrace.engine import Engine
from headrace.errors import HeadraceError, InternalError
from headrace.schedule.state import ScheduleState

Report = Callable[[str], None]
"""Receives reports, as text for people, of what a daemon does."""


def ignore_report(said: str) -> None:
    """Ignore a report of a daemon."""


# Errors after which a daemon starts over with a new lease: the lease or the server is lost.
ENDING = frozenset({"lease-lost", "connection-lost", "server-unreachable", "standby-server"})

logger = logging.getLogger("headrace.daemon")


def clock() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class DaemonContext:
    """Valid from taking the lease to giving it up."""

    engine: Engine
    lease: Lease
    listener: WakeupListener
    report: Report
    memory: ScheduleState
    now: Callable[[], datetime] = clock
    random: Random = field(default_factory=Random)
    monitor: Monitor = field(default_factory=Monitor)

    def failed(self, what: str, error: HeadraceError) -> None:
        """Report a failure that the daemon survives."""
        self.report(f"{what}: {error.message}")
        logger.warning(
            "%s failed",
            what,
            extra={"code": error.code, "error": error.message},
            exc_info=error if isinstance(error, InternalError) else None,
        )

    def recover(self) -> None:
        """Roll all logs back to their pins, while nothing else is written."""
        try:
            self.engine.recover(self.lease)
        except HeadraceError as error:
            self.failed("recovery", error)
            if error.code in ENDING:
                raise
