"""Work is done in order by one thread, and its errors reach the one who waits."""

from __future__ import annotations

import threading
from threading import current_thread

import pytest

from headrace.spark.session import Worker


def test_work_is_done_in_one_thread_in_order() -> None:
    worker = Worker("test")
    done: list[int] = []
    futures = [worker.submit(lambda number=number: done.append(number)) for number in range(20)]
    threads = {worker.do(lambda: current_thread().name) for _ in range(3)}
    worker.stop()
    assert all(future.done() for future in futures)
    assert done == list(range(20))
    assert threads == {"test"}


def test_an_error_is_raised_where_it_is_waited_for() -> None:
    worker = Worker("test")
    with pytest.raises(ZeroDivisionError):
        worker.do(lambda: 1 // 0)
    assert worker.do(lambda: 2) == 2
    worker.stop()


def test_a_worker_may_ask_itself() -> None:
    worker = Worker("test")
    assert worker.do(lambda: worker.do(lambda: 3)) == 3
    worker.stop()


def test_no_thread_before_the_first_work() -> None:
    before = threading.active_count()
    Worker("idle")
    assert threading.active_count() == before
