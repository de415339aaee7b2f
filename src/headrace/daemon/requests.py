"""Performing the requests of others, with reports of their progress, until they cancel them."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass
from typing import Any

from headrace.catalog.codec import to_json
from headrace.catalog.error_codec import encode_error
from headrace.catalog.records import Lease, Request
from headrace.catalog.requests import request_cancelled, request_lost
from headrace.commands.commands import decode_command
from headrace.engine import Engine
from headrace.engine.steps import (
    AlterTable,
    AppendChange,
    ComputeLoop,
    ComputeStage,
    CopySource,
    DropTables,
    Publish,
    SetUpCapture,
    Step,
    TakeCut,
)
from headrace.errors import HeadraceError, InternalError, Transient, internal_error
from headrace.spark.jobs import acting_thread

logger = logging.getLogger(__name__)

# Interval at which progress is reported and a cancellation is looked up.
LOOK_SECONDS = 0.25

# A cancelled request is stopped before these steps. Others clean up, also after a failure.
STOPPING = (
    SetUpCapture,
    TakeCut,
    AppendChange,
    CopySource,
    ComputeStage,
    ComputeLoop,
    Publish,
    AlterTable,
    DropTables,
)


@dataclass
class _Performance:
    """One request and the thread that performs it.

    `progress` is the latest report of the thread; `cancelled` asks it to stop.
    """

    request: int
    thread: int
    progress: tuple[str, int, int] | None = None
    cancelled: bool = False


class RequestExecutor:
    """Performs requests with a serving engine, in as many threads as it is called from.

    The executor replaces the engine's receivers of progress and steps by its own: these report what
    a performing thread does, stop the thread on request, and pass everything on. Other threads are
    not affected.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._performances: dict[int, _Performance] = {}
        self._report, self._watched = engine.progress, engine.watch
        engine.progress, engine.watch = self._progress, self._step

    def serve_next(self, lease: Lease) -> bool:
        """Perform the request that has waited longest; return False if none waits.

        No other thread may write meanwhile: after a failure all logs are rolled back to their pins.
        """
        request = self.take(lease)
        if request is not None and not self.perform(request):
            self._engine.recover(lease)
        return request is not None

    def take(self, lease: Lease) -> Request | None:
        """Return the longest waiting request, begun under this lease; it must be performed."""
        return self._engine.catalog.next_request(lease.fence)

    def give_back(self, request: Request) -> None:
        """Put a request that was taken and not begun back into the queue, for the next daemon."""
        self._engine.catalog.give_back(request.id)

    def close(self) -> None:
        """Give progress and steps back to their receivers; nothing is performed any more."""
        self._engine.progress, self._engine.watch = self._report, self._watched

    def perform(self, request: Request) -> bool:
        """Perform a request that was taken, in this thread, and end the request in any case.

        Return False if it failed: the caller has to roll back what it wrote beyond the pins.
        """
        performance = _Performance(request.id, threading.get_ident())
        self._performances[performance.thread] = performance
        ended = threading.Event()
        attendant = threading.Thread(
            target=self._attend, args=(performance, ended), name=f"request-{request.id}"
        )
        outcome: dict[str, Any] = {"error": encode_error(request_lost())}
        try:
            attendant.start()
            outcome = self._outcome(request, performance)
        finally:
            ended.set()
            attendant.join()
            del self._performances[performance.thread]
            self._finish(request.id, outcome)
        return "result" in outcome

    def _outcome(self, request: Request, performance: _Performance) -> dict[str, Any]:
        """Perform the command; return its result or its error as `finish` takes them."""
        try:
            if request.id in self._engine.catalog.cancelled():
                raise request_cancelled()
            command = decode_command(request.command, self._engine.database.search_path)
            answer = command.answer.encode(command.perform(self._engine))
            return {"result": json.loads(to_json(answer))}
        except Exception as error:
            # Every error is returned, as a client waits for the end of the request.
            if performance.cancelled and isinstance(error, HeadraceError):
                error = request_cancelled()
            elif not isinstance(error, HeadraceError):
                logger.exception("request %s", request.id)
                error = internal_error("perform the command", error)
            elif isinstance(error, InternalError):
                logger.exception("request %s", request.id)
            return {"error": encode_error(error)}

    def _finish(self, request: int, outcome: dict[str, Any]) -> None:
        try:
            self._engine.catalog.finish(request, **outcome)
        except Transient:
            # The catalog opens a new connection; to finish a request twice does no harm.
            self._engine.catalog.finish(request, **outcome)

    def _attend(self, performance: _Performance, ended: threading.Event) -> None:
        """Report progress, and pass a cancellation on, until the request has ended."""
        catalog, reported = self._engine.catalog, None
        while not ended.wait(LOOK_SECONDS):
            try:
                current = performance.progress
                if current is not None and current != reported:
                    reported = current
                    catalog.report(performance.request, _document(*current))
                if not performance.cancelled:
                    performance.cancelled = performance.request in catalog.cancelled()
                if performance.cancelled:
                    self._engine.runner.cancel(performance.thread)
            except HeadraceError as error:
                logger.info("request %s: %s", performance.request, error)

    def _progress(self, what: str, done: int, total: int) -> None:
        performance = self._performances.get(acting_thread())
        if performance is not None:
            performance.progress = (what, done, total)
            _stop_if_cancelled(performance)
        self._report(what, done, total)

    def _step(self, when: str, step: Step) -> None:
        performance = self._performances.get(acting_thread())
        if performance is not None and when == "before" and isinstance(step, STOPPING):
            _stop_if_cancelled(performance)
        self._watched(when, step)


def _stop_if_cancelled(performance: _Performance) -> None:
    if performance.cancelled:
        raise request_cancelled()


def _document(what: str, done: int, total: int) -> dict[str, Any]:
    return {"what": what, "done": done, "total": total}
