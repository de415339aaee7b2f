"""Submitting a command: performed here, or by the daemon that has the lease for its life."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headrace.catalog import Catalog
from headrace.catalog.error_codec import decode_error
from headrace.catalog.records import Request, RequestState
from headrace.catalog.requests import request_cancelled, request_lost
from headrace.commands.command import Command
from headrace.commands.commands import encode_command
from headrace.engine import Engine, this_process
from headrace.errors import Transient, Unavailable

R = TypeVar("R")

WAITING = "waiting for the daemon"
# The pause between two polls of a request grows from the first to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.2


def submit(engine: Engine, command: Command[R]) -> R:
    """Perform a command, here or by a daemon, and return its result or raise its error.

    While no daemon serves, the command waits for the lease as long as `lease_wait` says and is
    performed here. Otherwise it is left as a request. If the daemon ends before it begins with the
    request, the request is withdrawn and the command performed here; if the daemon ends later,
    `request-lost` is raised. An interrupt cancels the request.
    """
    while True:
        if engine.catalog.serving() is None:
            try:
                return command.perform(engine)
            except Unavailable as error:
                # A daemon may have begun to serve meanwhile. Without the lease, nothing was done.
                if error.code != "lease-held" or engine.catalog.serving() is None:
                    raise
        ended = _ask(engine, command)
        if ended is not None:
            return command.answer.decode(_result(ended))


@dataclass
class OpenRequests:
    """The requests of this process that a daemon performs now."""

    ids: set[int] = field(default_factory=set)


def cancel(engine: Engine) -> None:
    """Cancel the commands of other threads, performed here or by a daemon; they fail."""
    for request in tuple(engine.part(OpenRequests).ids):
        engine.catalog.cancel_request(request)
    engine.runner.cancel()


def _ask(engine: Engine, command: Command[Any]) -> Request | None:
    """Leave the command as a request and return its end; return None if it was withdrawn."""
    encoded = encode_command(command, engine.database.search_path)
    request = engine.catalog.request(encoded, this_process())
    engine.part(OpenRequests).ids.add(request)
    try:
        return _wait(engine, request)
    except (KeyboardInterrupt, SystemExit):
        engine.catalog.cancel_request(request)
        raise
    finally:
        engine.part(OpenRequests).ids.discard(request)


def _wait(engine: Engine, request: int) -> Request | None:
    pause = FIRST_PAUSE
    last_progress: tuple[str, int, int] | None = None
    while True:
        try:
            record = _look(engine.catalog, request)
        except Transient as error:
            if error.code != "connection-lost":
                raise
            # The next poll opens the connection again.
        else:
            if record is None or record.finished_at is not None:
                return record
            current = _progress(record)
            if current != last_progress:
                engine.progress(*current)
                last_progress = current
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _look(catalog: Catalog, request: int) -> Request | None:
    """Return the request as it is now; withdraw it and return None if no daemon can begin it."""
    record = catalog.request_state(request)
    if record is None:
        raise request_lost()
    if record.finished_at is not None:
        return record
    lease = catalog.serving()
    if record.state is RequestState.QUEUED:
        if lease is None and catalog.withdraw_request(request):
            return None
    elif record.fence is not None and (lease is None or lease.fence != record.fence):
        # The daemon that began with it is gone, or finished it just now: the next poll decides.
        catalog.lose_requests(record.fence + 1)
    return record


def _progress(request: Request) -> tuple[str, int, int]:
    """Return the progress of a request that has not ended, to be shown."""
    if request.state is RequestState.QUEUED:
        return WAITING, 0, 0
    if request.progress is None:
        return WAITING, 1, 1
    return request.progress["what"], request.progress["done"], request.progress["total"]


def _result(request: Request) -> Any:
    """Return the result of a request that has ended, or raise its error."""
    if request.state is RequestState.DONE:
        return request.result
    if request.state is RequestState.CANCELLED or request.error is None:
        raise request_cancelled()
    raise decode_error(request.error)
