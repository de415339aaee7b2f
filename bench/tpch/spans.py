"""What Spark does with its time during a refresh: inputs registered, query planned, query run.

Planning is read from Spark's own record of each query after the refresh, so that watching costs
next to nothing. Bytes and tasks are those that executors report. Over Spark Connect nothing of that
is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from headrace.spark.profiles import Profile
from headrace.spark.run import Input, Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")
PLANNING = ("optimization", "planning")


@dataclass
class Span:
    """One call of Spark, in seconds: all of it, its inputs, its analysis, and what ran after."""

    profile: str
    seconds: float = 0.0
    register: float = 0.0
    analyse: float = 0.0
    collect: float = 0.0
    frames: list[Any] = field(default_factory=list, repr=False)

    def described(self) -> dict[str, Any]:
        """For people who look for one slow query among several; milliseconds."""
        seconds = {
            "all": self.seconds,
            "register": self.register,
            "analyse": self.analyse,
            "plan": self.planned(),
            "run": self.collect - self.planned(),
        }
        return {"profile": self.profile, **{n: round(s * 1000, 1) for n, s in seconds.items()}}

    def planned(self) -> float:
        """Seconds in which Spark optimised and planned the queries that were collected."""
        milliseconds = 0
        for frame in self.frames:
            phases = frame._jdf.queryExecution().tracker().phases()  # noqa: SLF001
            known = (phases.get(name) for name in PLANNING)
            milliseconds += sum(one.get().durationMs() for one in known if one.isDefined())
        return milliseconds / 1000


class WatchedRunner(Runner):
    """A runner that notes every call while it is watched."""

    _spans: list[Span] | None = None

    @contextmanager
    def watched(self) -> Iterator[list[Span]]:
        """The calls that are made inside, in the order in which they end."""
        spans: list[Span] = []
        self._spans = spans
        try:
            yield spans
        finally:
            self._spans = None

    def call(
        self,
        profile: Profile,
        inputs: Sequence[Input],
        work: Callable[[SparkSession], Result],
        **more: Any,
    ) -> Result:
        spans = self._spans
        if spans is None:
            return super().call(profile, inputs, work, **more)
        span = Span(profile)
        started = time.perf_counter()

        def timed(session: SparkSession) -> Result:
            span.register = time.perf_counter() - started
            return work(cast("SparkSession", _Session(session, span)))

        try:
            return super().call(profile, inputs, timed, **more)
        finally:
            span.seconds = time.perf_counter() - started
            spans.append(span)


class _Session:
    """A session whose queries are timed."""

    def __init__(self, session: SparkSession, span: Span) -> None:
        self._session, self._span = session, span

    def sql(self, text: str) -> _Frame:
        started = time.perf_counter()
        frame = self._session.sql(text)
        self._span.analyse += time.perf_counter() - started
        return _Frame(frame, self._span)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _Frame:
    """A query whose collection is timed."""

    def __init__(self, frame: Any, span: Span) -> None:
        self._frame, self._span = frame, span

    def toArrow(self) -> Any:  # noqa: N802
        started = time.perf_counter()
        try:
            return self._frame.toArrow()
        finally:
            self._span.collect += time.perf_counter() - started
            if hasattr(self._frame, "_jdf"):
                self._span.frames.append(self._frame)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)


@dataclass(frozen=True)
class Totals:
    """What the executors did since the application started."""

    bytes_read: int = 0
    shuffled: int = 0
    tasks: int = 0

    def since(self, before: Totals) -> Totals:
        return Totals(
            self.bytes_read - before.bytes_read,
            self.shuffled - before.shuffled,
            self.tasks - before.tasks,
        )


def totals(session: SparkSession) -> Totals:
    """What the executors report; waits until all of it has arrived."""
    context = session.sparkContext._jsc.sc()  # noqa: SLF001
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().executorList(False)
    executors = [found.apply(number) for number in range(found.size())]
    return Totals(
        sum(one.totalInputBytes() for one in executors),
        sum(one.totalShuffleRead() for one in executors),
        sum(one.totalTasks() for one in executors),
    )
