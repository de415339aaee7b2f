"""Running queries over named inputs: the result as Arrow, or as Parquet parts in a folder."""

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
        self._pool = SessionPool(spark)
        self._lock = Lock()
        self._running: dict[SparkCall, Future[Any]] = {}
        self._uncounted: list[SparkCall] = []
        self._counted: Counter[int] = Counter()
        self._jobs_of_origin: Jobs | None = None

    def collect(
        self,
        sql: str,
        inputs: Sequence[Input],
        *,
        profile: Profile = "tiny",
        limit: int | None = None,
    ) -> pa.Table | TooLarge:
        """Return the result's rows, or `TooLarge` if there are more than `limit`."""
        # In the text, because `DataFrame.limit` would analyse the whole plan once more.
        text = sql if limit is None else f"{sql}\nLIMIT {limit + 1:d}"
        key = key_of(text, inputs)
        self._require_not_given_up()
        slot = self._pool.take(profile, inputs, key)
        table: pa.Table = self._call(slot, lambda: slot.collect(key, inputs))
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
        """Have executors write the result as Parquet parts into a new folder.

        The folder must not exist, so that it has this result only. With `schema`, a result of other
        columns or types raises before anything is written. A column that cannot be NULL by the
        query is written as required, the others as optional. Without `counted`, the call is not
        part of `jobs`.
        """

        def work(session: SparkSession) -> None:
            frame = session.sql(sql)
            if schema is not None:
                _require_schema(frame, schema)
            write_parts(frame, folder)

        self.call(profile, inputs, work, counted=counted)

    def frame(self, sql: str, inputs: Sequence[Input], *, profile: Profile = "wide") -> DataFrame:
        """Return the query as a DataFrame for a user, in a session of its own."""
        session = self._spark.new_session(profile)
        with translated():
            Views(session, one_partition=profile == "tiny").register(inputs)
            return session.sql(sql)

    @property
    def jobs(self) -> int:
        """Return the number of Spark jobs of all finished calls (over Spark Connect: queries)."""
        return self._jobs_by_caller().total()

    @property
    def own_jobs(self) -> int:
        """Return the number of jobs of calls from this thread, or an older one with its number."""
        return self._jobs_by_caller()[get_ident()]

    def _jobs_by_caller(self) -> Counter[int]:
        with self._lock:
            calls, self._uncounted = self._uncounted, []
            # The jobs of a lost or stopped application cannot be counted any more.
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
        """Run `work` in a session of the profile that has the inputs as views.

        `watch` is called repeatedly while the work runs. An interrupt (Ctrl-C) of the waiting
        thread cancels the work.
        """
        self._require_not_given_up()
        slot = self._pool.take(profile, inputs)

        def prepared() -> Result:
            slot.prepare(inputs)
            return work(slot.session)

        return self._call(slot, prepared, watch=watch, counted=counted)

    def _call(
        self,
        slot: SessionSlot,
        work: Callable[[], Result],
        *,
        watch: Callable[[Jobs, SparkCall], None] | None = None,
        counted: bool = True,
    ) -> Result:
        """Run `work` in the slot's thread, as one call, and return the slot to the pool."""
        call = SparkCall(slot.session, f"headrace-{uuid.uuid4().hex}", acting_thread(), get_ident())
        future = slot.worker.submit(lambda: self._work(slot, call, work))
        self._running[call] = future
        lost = False
        try:
            self._require_not_given_up()
            while watch is not None and not wait((future,), POLL_SECONDS).done:
                watch(self._jobs, call)
            return future.result()
        except UserError:
            raise
        except Exception as error:
            # A broken connection may fail in any way, such as by an incomplete answer.
            if not self._spark.is_lost(slot.generation):
                raise
            lost = True
            self._pool.discard_lost()
            raise Transient(
                "spark-lost",
                "lost Spark during a query",
                detail=error.message if isinstance(error, HeadraceError) else str(error),
                hint="Try again: the next query restarts Spark.",
            ) from error
        finally:
            # An unfinished future means that the wait was interrupted, not the work.
            self._stop({call: future})
            del self._running[call]
            if lost:
                slot.worker.stop()
            elif future.done():
                self._pool.give(slot)
            if counted and not lost:
                self._note(call)

    def release(self, name: str) -> None:
        """Free what inputs with this `kept_for` have in Spark's memory."""
        # A lost Spark has no memory to free.
        with suppress(HeadraceError), translated():
            self._pool.release(name)

    def cancel(self, thread: int | None = None) -> None:
        """Cancel all running calls, or only those on behalf of a thread; these calls raise."""
        running = dict(self._running)
        self._stop({c: future for c, future in running.items() if thread in (None, c.thread)})

    @contextmanager
    def ending(self, patience: float) -> Iterator[None]:
        """Let running calls end inside the `with`; cancel those that outlast `patience` seconds.

        After that time no call begins any more, and none waits for Spark to start.
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

    def _require_not_given_up(self) -> None:
        if self._spark.given_up.is_set():
            raise cancelled()

    def close(self) -> None:
        """Cancel running calls and end the threads; the Spark stays open."""
        self.cancel()
        self._pool.close()

    @property
    def _jobs(self) -> Jobs:
        if self._jobs_of_origin is None:
            self._jobs_of_origin = ConnectJobs() if self._spark.remote else ClassicJobs()
        return self._jobs_of_origin

    def _work(self, slot: SessionSlot, call: SparkCall, work: Callable[[], Result]) -> Result:
        jobs = self._jobs
        with translated():
            jobs.begin(call)
            try:
                return work()
            finally:
                jobs.end(call)
                slot.views.trim()

    def _stop(self, calls: dict[SparkCall, Future[Any]]) -> None:
        """Interrupt calls until all have ended: while planning, a call has no job to cancel."""
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
        """Have the call's jobs counted later: Spark's job tracking lags behind the result."""
        with self._lock:
            self._uncounted.append(call)
            full = len(self._uncounted) >= MOST_UNCOUNTED
        if full:
            _ = self.jobs


def write_parts(frame: DataFrame, folder: str) -> None:
    """Write Parquet parts, without a marker file, into a new folder."""
    frame.write.mode("error").options(**WRITING).parquet(folder)


def _require_schema(frame: DataFrame, schema: pa.Schema) -> None:
    actual = [(field.name, field.dataType) for field in frame.schema.fields]
    expected = [(field.name, field.dataType) for field in struct(schema).fields]
    if actual != expected:
        raise InternalError("invariant", f"a query returns {actual} where {expected} is stored")
