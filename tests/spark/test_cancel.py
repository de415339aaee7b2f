"""Cancelling the calls of one thread: those of others go on. No Spark is needed for it."""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from headrace.errors import Transient
from headrace.spark.jobs import Jobs, SparkCall
from headrace.spark.origins import SessionOrigin
from headrace.spark.run import Runner
from headrace.spark.session import Generation, Spark


class MemorySpark:
    """Sessions that are nothing but themselves."""

    remote = None
    generation = Generation(cast(SessionOrigin, None))
    given_up = threading.Event()

    def session_of_generation(self, profile: str) -> tuple[Generation, object]:
        return self.generation, object()

    def is_lost(self, generation: Generation) -> bool:
        return False


class MemoryJobs:
    """Work waits for its session's event; to interrupt a call is to set it."""

    def __init__(self) -> None:
        self.stops: defaultdict[int, threading.Event] = defaultdict(threading.Event)
        self.interrupted: set[int] = set()

    def begin(self, call: SparkCall) -> None: ...

    def end(self, call: SparkCall) -> None: ...

    def interrupt(self, call: SparkCall) -> None:
        self.interrupted.add(call.thread)
        self.stops[id(call.session)].set()

    def count(self, call: SparkCall) -> int:
        return 1

    def tasks_done(self, call: SparkCall) -> int | None:
        return None


def test_only_the_calls_of_the_thread_are_stopped() -> None:
    runner = Runner(cast(Spark, MemorySpark()))
    jobs = MemoryJobs()
    runner._jobs_of_origin = cast(Jobs, jobs)
    began = threading.Barrier(3)

    def work(session: Any) -> None:
        began.wait(30)
        assert jobs.stops[id(session)].wait(30)
        raise Transient("spark-failed", "stopped")

    def wait_for_it(threads: list[int]) -> None:
        threads.append(threading.get_ident())
        runner.call("tiny", [], work)

    first: list[int] = []
    second: list[int] = []
    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.submit(wait_for_it, threads) for threads in (first, second))
        began.wait(30)
        runner.cancel(first[0])
        with pytest.raises(Transient, match="stopped"):
            one.result(30)
        assert jobs.interrupted == set(first)
        assert not other.done()
        runner.cancel()
        with pytest.raises(Transient, match="stopped"):
            other.result(30)
    assert jobs.interrupted == {*first, *second}
    assert runner._running == {}
    runner.close()
