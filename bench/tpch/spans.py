"""What Spark does with its time during a refresh: inputs registered, query planned, query run.

Planning is read from Spark's own record of each query after the refresh, so that watching costs
next to nothing. Bytes and tasks are those that executors report. Over Spark Connect nothing of that
is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

from headrace.spark.run import Runner
from headrace.spark.session_pool import SessionSlot
from headrace.spark.views import Views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")
PLANNING = ("optimization", "planning")


@dataclass
class Span:
    """One call of Spark, in seconds: all of it, its inputs, its analysis, and what ran after.

    `made` are the queries that were analysed, `ran` those that were collected: of a query whose
    plan is kept the first is planned, and the second runs its plan.
    """

    profile: str
    seconds: float = 0.0
    register: float = 0.0
    analyse: float = 0.0
    collect: float = 0.0
    made: list[Any] = field(default_factory=list, repr=False)
    ran: list[Any] = field(default_factory=list, repr=False)

    def described(self) -> dict[str, Any]:
        """For people who look for one slow query among several; milliseconds."""
        seconds = {
            "all": self.seconds,
            "register": self.register,
            "analyse": self.analyse,
            "plan": self.planned(),
            "run": self.run(),
        }
        return {"profile": self.profile, **{n: round(s * 1000, 1) for n, s in seconds.items()}}

    def planned(self) -> float:
        """Seconds in which Spark optimised and planned queries."""
        return sum({id(frame): _planned(frame) for frame in (*self.made, *self.ran)}.values())

    def run(self) -> float:
        """Seconds in which queries ran; what was collected may have been planned only then."""
        return self.collect - sum(map(_planned, self.ran))


def _planned(frame: Any) -> float:
    if not hasattr(frame, "_jdf"):
        return 0.0
    phases = frame._jdf.queryExecution().tracker().phases()  # noqa: SLF001
    known = (phases.get(name) for name in PLANNING)
    return float(sum(one.get().durationMs() for one in known if one.isDefined()) / 1000)


class WatchedRunner(Runner):
    """A runner that notes every call while it is watched; calls are made one at a time then."""

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

    def _call(self, lane: SessionSlot, work: Callable[[], Result], **more: Any) -> Result:
        spans = self._spans
        if spans is None:
            return super()._call(lane, work, **more)
        span = Span(lane.profile)
        started = time.perf_counter()
        try:
            with _timed(type(lane.session), span):
                return super()._call(lane, work, **more)
        finally:
            span.seconds = time.perf_counter() - started
            spans.append(span)


@contextmanager
def _timed(session: type, span: Span) -> Iterator[None]:
    """Note in a span what goes on in Spark's and our own calls."""
    frame = type_of_frames(session)

    def noted(
        owner: type, name: str, note: Callable[[float, Any, Any], None]
    ) -> AbstractContextManager[Any]:
        through = getattr(owner, name)

        def call(this: Any, *arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            result = through(this, *arguments, **options)
            note(time.perf_counter() - started, this, result)
            return result

        return patch.object(owner, name, call)

    def registered(seconds: float, *_: Any) -> None:
        span.register += seconds

    def analysed(seconds: float, _: Any, made: Any) -> None:
        span.analyse += seconds
        span.made.append(made)

    def collected(seconds: float, ran: Any, _: Any) -> None:
        span.collect += seconds
        span.ran.append(ran)

    with ExitStack() as patches:
        for name in ("register", "register_leaves", "exchange"):
            patches.enter_context(noted(Views, name, registered))
        patches.enter_context(noted(session, "sql", analysed))
        patches.enter_context(noted(frame, "toArrow", collected))
        yield


def type_of_frames(session: type) -> type:
    """The class of the DataFrames of a session's class."""
    if "connect" in session.__module__:
        from pyspark.sql.connect import dataframe as connect

        return connect.DataFrame
    from pyspark.sql.classic import dataframe as classic

    return classic.DataFrame


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
