"""The daemon: ingests changes, refreshes tables that are due, and performs requested commands.

One thread probes for changes, ingests and decides. Workers refresh groups in parallel. Commands and
rebuilds of tables are performed one at a time while nothing else is written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from random import Random

from headrace.boundary.arguments import seconds
from headrace.daemon.context import DaemonContext, Report, clock, logger
from headrace.daemon.loop import DaemonLoop
from headrace.daemon.monitor import Monitor, Room
from headrace.daemon.wakeup import WakeupListener
from headrace.engine import Engine
from headrace.errors import Transient, Unavailable
from headrace.graph.live import LiveGraph
from headrace.schedule.retry import RECONNECT
from headrace.schedule.state import ScheduleState


class Daemon:
    """Serves one project until it is stopped. `report` receives a text for each action.

    `room` returns the free and the total bytes of the project's disk.
    """

    def __init__(
        self,
        engine: Engine,
        report: Report,
        now: Callable[[], datetime] = clock,
        room: Room | None = None,
    ) -> None:
        self._engine = engine
        self._report = report
        self._now = now
        self._random = Random()  # noqa: S311
        self._memory = ScheduleState()
        self._monitor = Monitor(room)
        self._graph = LiveGraph()
        self._stop = threading.Event()
        self._listener: WakeupListener | None = None

    def stop(self) -> None:
        """Make `run` end after the work under way; from any thread or signal handler."""
        self._stop.set()
        if self._listener is not None:
            self._listener.wake()

    def run(self, wait: float) -> None:
        """Serve until stopped; raise `lease-held` if the lease is not free within `wait` seconds.

        When the server or the lease is lost later, the daemon serves again once they are back.
        """
        seconds("wait", wait)
        failures = 0
        while not self._stop.is_set():
            try:
                with (
                    self._engine.serving(wait) as lease,
                    WakeupListener(self._engine.database) as listener,
                ):
                    self._listener, failures = listener, 0
                    self._report("serving")
                    context = DaemonContext(
                        self._engine,
                        lease,
                        listener,
                        self._report,
                        self._memory,
                        self._now,
                        self._random,
                        self._monitor,
                    )
                    DaemonLoop(context, self._graph, self._stop).run()
            except (Transient, Unavailable) as error:
                if self._listener is None:
                    raise
                failures += 1
                self._report(f"interrupted: {error.message}")
                logger.warning("interrupted", extra={"code": error.code, "error": error.message})
                pause = RECONNECT.bound(failures) * self._random.random()
                self._stop.wait(pause.total_seconds())
