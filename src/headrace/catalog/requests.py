"""The protocol of requests: commands that are queued for the holder of the lease.

queued → running → done | failed | cancelled, or queued → cancelled; an end is never left again.
The first end counts: a request that was ended as lost stays so, whatever its performer reports
later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from headrace.catalog.records import Heartbeat, Lease, Request
from headrace.errors import Transient

# The channel on which PostgreSQL announces a new request.
CHANNEL = "headrace_requests"


class Requests(Protocol):
    """Requests and their results; requests that ended more than a week ago may be deleted."""

    def serving(self) -> Lease | None:
        """Return the lease of the daemon that takes requests now, None if no daemon is alive."""

    def heartbeat(self) -> Heartbeat | None:
        """Return the heartbeat of the daemon with the newest lease, None before its first."""

    def request(self, command: dict[str, Any], requested_by: str) -> int:
        """Queue a command for the holder of the lease; return the id of the request."""

    def request_state(self, request: int) -> Request | None:
        """Return a request in its present state, None if there is none with this id."""

    def next_request(self, fence: int) -> Request | None:
        """Take the request that has waited longest, and record that it is running.

        Raise `lease-lost` if `fence` is not the newest.
        """

    def give_back(self, request: int) -> None:
        """Put a request that was taken back into the queue, as nothing was done for it."""

    def report(self, request: int, progress: Mapping[str, Any]) -> None:
        """Record the progress of a running request."""

    def finish(self, request: int, *, result: Any = None, error: Any = None) -> None:
        """End a running request: done, or with an error failed, or cancelled if so requested."""

    def withdraw_request(self, request: int) -> bool:
        """Cancel a request that nobody has begun; return False if it is too late for that."""

    def cancel_request(self, request: int) -> None:
        """Withdraw a request, or ask the daemon that performs it to stop."""

    def cancelled(self) -> frozenset[int]:
        """Return the running requests that shall stop."""

    def lose_requests(self, fence: int) -> None:
        """End as failed the requests begun under leases before this one that are still running."""


def request_lost() -> Transient:
    """Return the error of a request whose daemon went away while it ran."""
    return Transient(
        "request-lost",
        "the daemon stopped in the middle of the command",
        detail="It is not known here whether the command was done.",
        hint="Look at `headrace status` and `headrace history` before you repeat it.",
    )


def request_cancelled() -> Transient:
    """Return the error of a request that was stopped, or withdrawn by somebody else."""
    return Transient("request-cancelled", "the command was cancelled")
