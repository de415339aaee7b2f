"""A command is done where it can be: here, or by the daemon that has the lease for its life."""

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
# The pause between two looks at a request grows from one to the other.
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.2


def submit(engine: Engine, command: Command[R]) -> R:
    """Do a command, or have it done; its result or its error are the same either way.

    While nobody serves, it waits for the lease as long as `lease_wait` says and is done here. Else
    it is left as a request. When the daemon goes away before it began with it, the request is
    withdrawn and done here; when it goes away later, that is `request-lost`. An interrupt cancels
    the request.
    """
    while True:
        if engine.catalog.serving() is None:
            try:
                return command.perform(engine)
            except Unavailable as error:
                # A daemon may have begun to serve meanwhile. Without the lease nothing was done.
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
    """Stop what other threads do or have a daemon do; those commands fail."""
    for request in tuple(engine.part(OpenRequests).ids):
        engine.catalog.cancel_request(request)
    engine.runner.cancel()


def _ask(engine: Engine, command: Command[Any]) -> Request | None:
    """Leave the command as a request and wait for its end; None if it was withdrawn."""
    asked = encode_command(command, engine.database.search_path)
    request = engine.catalog.request(asked, this_process())
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
    shown: tuple[str, int, int] | None = None
    while True:
        try:
            found = _look(engine.catalog, request)
        except Transient as error:
            if error.code != "connection-lost":
                raise
            # The next look opens the connection again.
        else:
            if found is None or found.finished_at is not None:
                return found
            current = _progress(found)
            if current != shown:
                engine.progress(*current)
                shown = current
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _look(catalog: Catalog, request: int) -> Request | None:
    """The request as it is now; None if nobody is there to begin with it, and it is withdrawn."""
    found = catalog.request_state(request)
    if found is None:
        raise request_lost()
    if found.finished_at is not None:
        return found
    lease = catalog.serving()
    if found.state is RequestState.QUEUED:
        if lease is None and catalog.withdraw_request(request):
            return None
    elif found.fence is not None and (lease is None or lease.fence != found.fence):
        # Whoever began with it is gone, or finished it just now: the next look decides.
        catalog.lose_requests(found.fence + 1)
    return found


def _progress(request: Request) -> tuple[str, int, int]:
    """What to show of a request that has not ended."""
    if request.state is RequestState.QUEUED:
        return WAITING, 0, 0
    if request.progress is None:
        return WAITING, 1, 1
    return request.progress["what"], request.progress["done"], request.progress["total"]


def _result(request: Request) -> Any:
    """The result of a request that has ended, or its error."""
    if request.state is RequestState.DONE:
        return request.result
    if request.state is RequestState.CANCELLED or request.error is None:
        raise request_cancelled()
    raise decode_error(request.error)
