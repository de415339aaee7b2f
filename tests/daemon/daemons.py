"""A daemon reduced to what it does for others: it serves requests in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import headrace
from headrace.catalog import Catalog
from headrace.catalog.records import Lease, Request
from headrace.daemon.requests import RequestExecutor
from headrace.engine import Engine

PATIENCE = 60.0


@dataclass
class Daemon:
    """Serves for the time of a `with`; whatever goes wrong in its thread is raised at the end."""

    project: headrace.Headrace
    lease: Lease | None = None
    failure: BaseException | None = None
    _ready: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def engine(self) -> Engine:
        return self.project._engine

    @property
    def fence(self) -> int:
        assert self.lease is not None
        return self.lease.fence

    def _serve(self) -> None:
        try:
            with self.engine.serving(PATIENCE) as self.lease:
                self.engine.catalog.lose_requests(self.lease.fence)
                desk = RequestExecutor(self.engine)
                self._ready.set()
                while not self._stop.is_set():
                    if not desk.serve_next(self.lease):
                        self._stop.wait(0.02)
        except BaseException as error:  # noqa: BLE001
            self.failure = error
        finally:
            self._ready.set()

    @contextmanager
    def serving(self) -> Iterator[Daemon]:
        thread = threading.Thread(target=self._serve)
        thread.start()
        try:
            assert self._ready.wait(PATIENCE)
            yield self
        finally:
            self._stop.set()
            thread.join()
        if self.failure is not None:
            raise self.failure


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread or process brings about."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come about")


def last_request(catalog: Catalog) -> Request | None:
    """The newest request there is."""
    found, number = None, 1
    while (request := catalog.request_state(number)) is not None:
        found, number = request, number + 1
    return found


def in_state(catalog: Catalog, state: str) -> bool:
    found = last_request(catalog)
    return found is not None and found.state == state
