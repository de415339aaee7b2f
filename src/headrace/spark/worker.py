"""A thread that works for callers who may stop waiting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Any, TypeVar

Result = TypeVar("Result")
POLL_SECONDS = 0.1


class GivenUp(Exception):
    """Nobody waits any more for work that still goes on."""


class Worker:
    """A daemon thread that does one piece of work at a time, in the order it was given.

    All calls to Spark are made here and never in the main thread: an interrupt in the middle of
    a call would leave half an answer on the connection to the JVM. So Ctrl-C ends only the
    waiting, and the caller can then cancel the work. The thread starts with the first work.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        future: Future[Result] = Future()
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
        self._queue.put((future, work))
        return future

    def do(self, work: Callable[[], Result], given_up: Event | None = None) -> Result:
        """Submit and wait; within the worker's own thread, just do it.

        Once `given_up` is set, the waiting ends with GivenUp; the work goes on.
        """
        if current_thread() is self._thread:
            return work()
        future = self.submit(work)
        while given_up is not None and not wait((future,), POLL_SECONDS).done:
            if given_up.is_set():
                raise GivenUp
        return future.result()

    def stop(self) -> None:
        """End the thread after the work it has been given."""
        self._queue.put(None)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            future, work = item
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  the waiting caller gets it
                future.set_exception(error)
            # The thread waits long between two pieces of work: hold no result meanwhile.
            del item, future, work
