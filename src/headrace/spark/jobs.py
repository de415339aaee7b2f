"""The Spark jobs of one call: named, counted and stopped, classic and over Spark Connect."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class SparkCall:
    """One use of a session, under a unique name.

    `caller` is the thread that waits for the call, `thread` the one on whose behalf it runs.
    """

    session: SparkSession
    name: str
    thread: int
    caller: int


class Jobs(Protocol):
    """Operations on the jobs of a call, from any thread."""

    def begin(self, call: SparkCall) -> None:
        """Mark the next jobs of the current thread with the call's name."""

    def end(self, call: SparkCall) -> None:
        """Remove the mark."""

    def interrupt(self, call: SparkCall) -> None:
        """Cancel the running jobs of the call."""

    def count(self, call: SparkCall) -> int:
        """Return how many jobs the call has run."""

    def tasks_done(self, call: SparkCall) -> int | None:
        """Return how many tasks of the call are complete; None over Spark Connect."""


class ClassicJobs:
    """Marks jobs by job group: a Python thread is one thread of the JVM, which has the group."""

    def begin(self, call: SparkCall) -> None:
        context = call.session.sparkContext
        context.setJobGroup(call.name, "headrace")
        # Without a call site Spark searches the stack for one, repeatedly for every query.
        context.setLocalProperty("callSite.long", "headrace")

    def end(self, call: SparkCall) -> None:
        """Do nothing: the next `begin` replaces the group."""

    def interrupt(self, call: SparkCall) -> None:
        call.session.sparkContext.cancelJobGroup(call.name)

    def count(self, call: SparkCall) -> int:
        return len(call.session.sparkContext.statusTracker().getJobIdsForGroup(call.name))

    def tasks_done(self, call: SparkCall) -> int | None:
        tracker = call.session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(call.name)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numCompletedTasks for stage in stages if stage)


class ConnectJobs:
    """Marks jobs by tag. Clients do not see jobs, so every query counts as one."""

    def begin(self, call: SparkCall) -> None:
        call.session.addTag(call.name)

    def end(self, call: SparkCall) -> None:
        call.session.removeTag(call.name)

    def interrupt(self, call: SparkCall) -> None:
        call.session.interruptTag(call.name)

    def count(self, call: SparkCall) -> int:
        return 1

    def tasks_done(self, call: SparkCall) -> int | None:
        return None


Result = TypeVar("Result")
_acted_for: ContextVar[int | None] = ContextVar("headrace_acting_thread", default=None)


def acting_thread() -> int:
    """Return the thread on whose behalf the current thread acts, or the current thread."""
    principal = _acted_for.get()
    return get_ident() if principal is None else principal


def helping(work: Callable[[], Result]) -> Callable[[], Result]:
    """Return the work, to be done by another thread on behalf of this one."""
    principal = acting_thread()

    def delegated() -> Result:
        token = _acted_for.set(principal)
        try:
            return work()
        finally:
            _acted_for.reset(token)

    return delegated
