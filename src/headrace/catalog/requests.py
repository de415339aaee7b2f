"""The seam for commands that are left for the holder of the lease.

queued → running → done | failed | cancelled, or queued → cancelled; an end is never left again.
Whoever comes second changes nothing: a request that was given up as lost stays so, whatever the
one who ran it says later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from headrace.catalog.records import Heartbeat, Lease, Request
from headrace.errors import Transient

# The channel on which PostgreSQL announces a new request.
CHANNEL = "headrace_requests"


class Requests(Protocol):
    """Requests and what becomes of them; one that ended a week ago may be forgotten."""

    def serving(self) -> Lease | None:
        """The lease of whoever takes requests now, None if nobody alive does."""

    def heartbeat(self) -> Heartbeat | None:
        """The heartbeat of the daemon with the newest lease, None before its first."""

    def request(self, command: dict[str, Any], requested_by: str) -> int:
        """Leave a command for the holder of the lease; its id."""

    def request_state(self, request: int) -> Request | None:
        """What became of a request so far."""

    def next_request(self, fence: int) -> Request | None:
        """Take the request that has waited longest; it is running from now on.

        Another fence than the newest is `lease-lost`.
        """

    def give_back(self, request: int) -> None:
        """Let a request that was taken wait again, as nothing was done for it."""

    def report(self, request: int, progress: Mapping[str, Any]) -> None:
        """Record how far a running request is."""

    def finish(self, request: int, *, result: Any = None, error: Any = None) -> None:
        """End a running request; with an error it failed, or was cancelled if that was asked."""

    def withdraw_request(self, request: int) -> bool:
        """Cancel a request that nobody has begun; False if it is too late for that."""

    def cancel_request(self, request: int) -> None:
        """Withdraw a request, or ask whoever runs it to stop."""

    def cancelled(self) -> frozenset[int]:
        """The running requests that shall stop."""

    def lose_requests(self, fence: int) -> None:
        """End as failed what was begun under leases before this one and is still running."""


def request_lost() -> Transient:
    """The error of a request whose holder went away while it ran."""
    return Transient(
        "request-lost",
        "the daemon stopped in the middle of the command",
        detail="It is not known here whether the command was done.",
        hint="Look at `headrace status` and `headrace history` before you repeat it.",
    )


def request_cancelled() -> Transient:
    """The error of a request that was stopped, or withdrawn by somebody else."""
    return Transient("request-cancelled", "the command was cancelled")
