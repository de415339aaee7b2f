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
    """One use of a session under a name that no other call has.

    `caller` is the thread that waits for it, `thread` the one that it acts for.
    """

    session: SparkSession
    name: str
    thread: int
    caller: int


class Jobs(Protocol):
    """What can be known of and done to the jobs of a call, from any thread."""

    def begin(self, call: SparkCall) -> None:
        """Give the calling thread's next jobs the call's name."""

    def end(self, call: SparkCall) -> None:
        """Take the name away again."""

    def interrupt(self, call: SparkCall) -> None:
        """Stop the call's jobs that run now."""

    def count(self, call: SparkCall) -> int:
        """How many jobs the call has run."""

    def tasks_done(self, call: SparkCall) -> int | None:
        """How many tasks of the call are complete, or None where Spark does not say."""


class ClassicJobs:
    """By job group: a thread of Python is one thread of the JVM, and the group belongs to it."""

    def begin(self, call: SparkCall) -> None:
        context = call.session.sparkContext
        context.setJobGroup(call.name, "headrace")
        # Otherwise Spark searches the stack for it, again and again for every query.
        context.setLocalProperty("callSite.long", "headrace")

    def end(self, call: SparkCall) -> None:
        """The next call's `begin` takes the group's place."""

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
    """By tag. A client does not learn of jobs, so every query that was run counts as one."""

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
_helped: ContextVar[int | None] = ContextVar("headrace_helped_thread", default=None)


def acting_thread() -> int:
    """The thread that this one helps, or itself."""
    helped = _helped.get()
    return get_ident() if helped is None else helped


def helping(work: Callable[[], Result]) -> Callable[[], Result]:
    """The work as another thread does it for this one."""
    helped = acting_thread()

    def help_out() -> Result:
        token = _helped.set(helped)
        try:
            return work()
        finally:
            _helped.reset(token)

    return help_out
