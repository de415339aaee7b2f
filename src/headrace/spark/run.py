"""Running one query over named inputs: the result as Arrow, or as Parquet parts in a folder."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, Timer, get_ident
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from headrace.errors import HeadraceError, InternalError, Transient, UserError
from headrace.spark.failures import cancelled, translated
from headrace.spark.jobs import ClassicJobs, ConnectJobs, Jobs, SparkCall, acting_thread
from headrace.spark.prepared import key_of
from headrace.spark.profiles import Profile
from headrace.spark.schema import struct
from headrace.spark.session import Spark
from headrace.spark.session_pool import SessionPool, SessionSlot
from headrace.spark.views import Input, Views
from headrace.store.layout import GROUP_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Input", "Runner", "TooLarge"]

Result = TypeVar("Result")
CANCEL_SECONDS = 10.0
POLL_SECONDS = 0.2
MOST_UNCOUNTED = 100
WRITING = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "parquet.block.row.count.limit": str(GROUP_ROWS),
}


@dataclass(frozen=True)
class TooLarge:
    """The result has more rows than `limit`; write it instead."""

    limit: int


class Runner:
    """Runs queries on a Spark; calls from several threads run at the same time."""

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self._lanes = SessionPool(spark)
        self._lock = Lock()
        self._running: dict[SparkCall, Future[Any]] = {}
        self._uncounted: list[SparkCall] = []
        self._counted: Counter[int] = Counter()
        self._known_jobs: Jobs | None = None

    def collect(
        self,
        sql: str,
        inputs: Sequence[Input],
        *,
        profile: Profile = "tiny",
        limit: int | None = None,
    ) -> pa.Table | TooLarge:
        """The result's rows, or `TooLarge` if there are more than `limit`."""
        # In the text: a limit on the DataFrame would have the whole plan analysed once more.
        text = sql if limit is None else f"{sql}\nLIMIT {limit + 1:d}"
        key = key_of(text, inputs)
        self._require_wanted()
        lane = self._lanes.take(profile, inputs, key)
        table: pa.Table = self._call(lane, lambda: lane.collect(key, inputs))
        return table if limit is None or table.num_rows <= limit else TooLarge(limit)

    def write(
        self,
        sql: str,
        inputs: Sequence[Input],
        folder: str,
        *,
        schema: pa.Schema | None = None,
        profile: Profile = "wide",
        counted: bool = True,
    ) -> None:
        """Let the executors write the result as Parquet parts into a folder.

        The folder must not exist: what is in it afterwards is this result and nothing else. With
        `schema` given, a result of other columns or types raises before anything is written. A
        column that cannot be NULL by the query is written as required, the others as optional.
        What is not `counted` is not among the `jobs`.
        """

        def work(session: SparkSession) -> None:
            frame = session.sql(sql)
            if schema is not None:
                _require_schema(frame, schema)
            write_parts(frame, folder)

        self.call(profile, inputs, work, counted=counted)

    def frame(self, sql: str, inputs: Sequence[Input], *, profile: Profile = "wide") -> DataFrame:
        """The query as a DataFrame for a user, in a session that is not used for anything else."""
        session = self._spark.new_session(profile)
        with translated():
            Views(session, one_partition=profile == "tiny").register(inputs)
            return session.sql(sql)

    @property
    def jobs(self) -> int:
        """How many Spark jobs the calls that have ended ran (over Spark Connect: queries)."""
        return self._jobs_by_caller().total()

    @property
    def own_jobs(self) -> int:
        """How many of them were of calls of this thread, or of one that had its number before."""
        return self._jobs_by_caller()[get_ident()]

    def _jobs_by_caller(self) -> Counter[int]:
        with self._lock:
            calls, self._uncounted = self._uncounted, []
            # The jobs of an application that is gone or stopped cannot be counted any more.
            for call in calls:
                with suppress(HeadraceError, AttributeError), translated():
                    self._counted[call.caller] += self._jobs.count(call)
            return self._counted

    def call(
        self,
        profile: Profile,
        inputs: Sequence[Input],
        work: Callable[[SparkSession], Result],
        *,
        watch: Callable[[Jobs, SparkCall], None] | None = None,
        counted: bool = True,
    ) -> Result:
        """Do `work` in a session of the profile that has the inputs as views.

        `watch` is called now and then while the work is done. An interrupt (Ctrl-C) of the
        waiting thread cancels the work.
        """
        self._require_wanted()
        lane = self._lanes.take(profile, inputs)

        def prepared() -> Result:
            lane.prepare(inputs)
            return work(lane.session)

        return self._call(lane, prepared, watch=watch, counted=counted)

    def _call(
        self,
        lane: SessionSlot,
        work: Callable[[], Result],
        *,
        watch: Callable[[Jobs, SparkCall], None] | None = None,
        counted: bool = True,
    ) -> Result:
        """Do `work` by the lane's thread, as one call, and give the lane back."""
        call = SparkCall(lane.session, f"headrace-{uuid.uuid4().hex}", acting_thread(), get_ident())
        future = lane.worker.submit(lambda: self._work(lane, call, work))
        self._running[call] = future
        lost = False
        try:
            self._require_wanted()
            while watch is not None and not wait((future,), POLL_SECONDS).done:
                watch(self._jobs, call)
            return future.result()
        except UserError:
            raise
        except Exception as error:
            # A broken connection may fail in any way, such as by half of an answer.
            if not self._spark.is_lost(lane.generation):
                raise
            lost = True
            self._lanes.discard_lost()
            raise Transient(
                "spark-lost",
                "Spark was lost in the middle of a query",
                detail=error.message if isinstance(error, HeadraceError) else str(error),
                hint="Try again: the next query starts Spark again.",
            ) from error
        finally:
            # Not done means that the waiting was interrupted, not the work.
            self._stop({call: future})
            del self._running[call]
            if lost:
                lane.worker.stop()
            elif future.done():
                self._lanes.give(lane)
            if counted and not lost:
                self._note(call)

    def release(self, name: str) -> None:
        """Let go of what inputs that were `kept_for` this have in Spark's memory."""
        # A Spark that is gone has let go already.
        with suppress(HeadraceError), translated():
            self._lanes.release(name)

    def cancel(self, thread: int | None = None) -> None:
        """Stop what runs now, or only what is done for this thread; those calls raise."""
        running = dict(self._running)
        self._stop({c: future for c, future in running.items() if thread in (None, c.thread)})

    @contextmanager
    def ending(self, patience: float) -> Iterator[None]:
        """Let what runs end in the `with`; what has not after so many seconds is cancelled.

        Then nothing begins any more either, and nobody waits for Spark to start.
        """

        def give_up() -> None:
            self._spark.given_up.set()
            self.cancel()

        timer = Timer(patience, give_up)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            self._spark.given_up.clear()

    def _require_wanted(self) -> None:
        if self._spark.given_up.is_set():
            raise cancelled()

    def close(self) -> None:
        """Cancel what runs and let the threads go; the Spark stays open."""
        self.cancel()
        self._lanes.close()

    @property
    def _jobs(self) -> Jobs:
        if self._known_jobs is None:
            self._known_jobs = ConnectJobs() if self._spark.remote else ClassicJobs()
        return self._known_jobs

    def _work(self, lane: SessionSlot, call: SparkCall, work: Callable[[], Result]) -> Result:
        jobs = self._jobs
        with translated():
            jobs.begin(call)
            try:
                return work()
            finally:
                jobs.end(call)
                lane.views.trim()

    def _stop(self, calls: dict[SparkCall, Future[Any]]) -> None:
        """Interrupt until all have ended: a call that is still planning has no job to stop yet."""
        deadline = time.monotonic() + CANCEL_SECONDS
        while time.monotonic() < deadline:
            live = [call for call, future in calls.items() if not future.done()]
            if not live:
                return
            with suppress(HeadraceError), translated():
                for call in live:
                    self._jobs.interrupt(call)
            wait(calls.values(), POLL_SECONDS)

    def _note(self, call: SparkCall) -> None:
        """Count the call's jobs later: Spark's own book-keeping lags behind the result."""
        with self._lock:
            self._uncounted.append(call)
            full = len(self._uncounted) >= MOST_UNCOUNTED
        if full:
            _ = self.jobs


def write_parts(frame: DataFrame, folder: str) -> None:
    """Write Parquet parts, and no marker file, into a folder that does not exist."""
    frame.write.mode("error").options(**WRITING).parquet(folder)


def _require_schema(frame: DataFrame, schema: pa.Schema) -> None:
    found = [(field.name, field.dataType) for field in frame.schema.fields]
    wanted = [(field.name, field.dataType) for field in struct(schema).fields]
    if found != wanted:
        raise InternalError("invariant", f"a query gives {found} where {wanted} is stored")
