"""Whether Headrace is the reason why a statement of the application failed or waited."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass

# SQLSTATEs of a server that stops, crashes or starts, and of connections that it cuts.
SERVER_GONE = frozenset({None, "57P01", "57P02", "57P03", "08000", "08003", "08006", "08001"})
# Seconds from which on a wait counts.
LONG = 1.0


@dataclass(frozen=True)
class Window:
    """A time in which the soak itself keeps the application from the server."""

    kind: str
    begin: float
    end: float

    def overlaps(self, begin: float, end: float) -> bool:
        """Return whether any of a time, such as the life of a session, is in this one."""
        return begin <= self.end and self.begin <= end


@dataclass(frozen=True)
class Failure:
    """A statement of the application that failed, with the server's SQLSTATE, if any.

    `opened` is when its session began to connect.
    """

    at: float
    opened: float
    statement: str
    sqlstate: str | None
    message: str


@dataclass(frozen=True)
class Wait:
    """A statement that waited for a lock because of Headrace, and what Headrace was doing.

    `seconds` is the longest that the wait may have lasted by what was seen of it.
    """

    at: float
    seconds: float
    session: str
    statement: str
    blocker: str


def unexplained(failures: Iterable[Failure], windows: Iterable[Window]) -> tuple[Failure, ...]:
    """Return the failures that no server fault of the soak explains.

    A fault ends all sessions. A session notices that with its next statement, however much later.
    """
    known = tuple(windows)
    return tuple(
        failure
        for failure in failures
        if failure.sqlstate not in SERVER_GONE
        or not any(window.overlaps(failure.opened, failure.at) for window in known)
    )


def long_waits(
    waits: Iterable[Wait], slow: Mapping[str, Collection[tuple[float, float]]]
) -> tuple[Wait, ...]:
    """Return the waits that lasted over a second.

    `slow` has, for each session that takes the times of all its statements, the begin and end of
    those over a second: a wait is part of its statement, so it was no longer than that.
    """
    return tuple(
        wait
        for wait in waits
        if wait.seconds > LONG
        and (
            wait.session not in slow
            or any(
                begin <= wait.at + wait.seconds and wait.at <= end
                for begin, end in slow[wait.session]
            )
        )
    )


def waits_for_headrace(session: int, blockers: Mapping[int, Set[int]], headrace: Set[int]) -> bool:
    """Return whether a waiting session would go on if Headrace had no session.

    `blockers` has the sessions that each waiting one waits for. A session that is blocked by an
    application's session as well, which is not itself held up by Headrace, would wait anyway.
    """
    return not _waits_anyway(session, blockers, headrace, frozenset())


def _waits_anyway(
    session: int, blockers: Mapping[int, Set[int]], headrace: Set[int], seen: Set[int]
) -> bool:
    seen = seen | {session}
    return any(
        not blockers.get(one) or _waits_anyway(one, blockers, headrace, seen)
        for one in blockers.get(session, frozenset())
        if one not in headrace and one not in seen
    )
