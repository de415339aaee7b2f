"""Requests in memory: the same guarantees without a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from headrace.catalog.catalog import lease_lost
from headrace.catalog.codec import to_json
from headrace.catalog.error_codec import encode_error
from headrace.catalog.records import Heartbeat, Lease, Request, RequestState
from headrace.catalog.requests import request_lost


class MemoryRequests:
    """Implements `Requests` for a catalog in memory, which holds the lease."""

    _lease: Lease | None
    _fence: int

    def __init__(self) -> None:
        self._requests: dict[int, Request] = {}

    def _use(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def serving(self) -> Lease | None:
        lease = self._lease
        return lease if lease is not None and lease.serves else None

    def heartbeat(self) -> Heartbeat | None:
        return None

    def request(self, command: dict[str, Any], requested_by: str) -> int:
        with self._use():
            number = len(self._requests) + 1
            made = Request(number, _stored(command), requested_by, datetime.now(UTC))
            self._requests[number] = made
            return number

    def request_state(self, request: int) -> Request | None:
        with self._use():
            return self._requests.get(request)

    def next_request(self, fence: int) -> Request | None:
        with self._use():
            if fence != self._fence:
                raise lease_lost(fence, self._fence)
            for request in self._in(RequestState.QUEUED):
                now = datetime.now(UTC)
                self._put(request, state=RequestState.RUNNING, started_at=now, fence=fence)
                return self._requests[request.id]
            return None

    def give_back(self, request: int) -> None:
        with self._use():
            for running_request in self._in(RequestState.RUNNING, request):
                self._put(running_request, state=RequestState.QUEUED, started_at=None, fence=None)

    def report(self, request: int, progress: Mapping[str, Any]) -> None:
        with self._use():
            for running_request in self._in(RequestState.RUNNING, request):
                self._put(running_request, progress=_stored(dict(progress)))

    def finish(self, request: int, *, result: Any = None, error: Any = None) -> None:
        with self._use():
            for running_request in self._in(RequestState.RUNNING, request):
                stopped = RequestState.CANCELLED if running_request.cancel else RequestState.FAILED
                if error is None:
                    self._end(running_request, RequestState.DONE, result=_stored(result))
                else:
                    self._end(running_request, stopped, error=_stored(error))

    def withdraw_request(self, request: int) -> bool:
        with self._use():
            waiting = self._in(RequestState.QUEUED, request)
            for queued_request in waiting:
                self._end(queued_request, RequestState.CANCELLED, cancel=True)
            return bool(waiting)

    def cancel_request(self, request: int) -> None:
        with self._use():
            if not self.withdraw_request(request):
                for running_request in self._in(RequestState.RUNNING, request):
                    self._put(running_request, cancel=True)

    def cancelled(self) -> frozenset[int]:
        with self._use():
            return frozenset(
                request.id for request in self._in(RequestState.RUNNING) if request.cancel
            )

    def lose_requests(self, fence: int) -> None:
        with self._use():
            for request in self._in(RequestState.RUNNING):
                if request.fence is not None and request.fence < fence:
                    self._end(request, RequestState.FAILED, error=encode_error(request_lost()))

    def _in(self, state: RequestState, request: int | None = None) -> list[Request]:
        """Return all requests in a state, or only the one with the number `request` if it is."""
        records = self._requests.values()
        return [
            record for record in records if record.state is state and request in (None, record.id)
        ]

    def _put(self, request: Request, **changes: Any) -> None:
        self._requests[request.id] = replace(request, **changes)

    def _end(self, request: Request, state: RequestState, **changes: Any) -> None:
        self._put(request, state=state, finished_at=datetime.now(UTC), **changes)


def _stored(value: Any) -> Any:
    """Return the value as it would come back from JSON."""
    return json.loads(to_json(value))
