"""A Spark that dies under several calls, while it starts, and while nobody uses it.

Each application is a generation. The origins here are in memory; `e2e/test_dead_jvm.py` kills JVMs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from headrace.errors import Transient, UserError
from headrace.spark.run import Runner
from headrace.spark.session import Spark

PATIENCE = 30.0


class Application:
    """A Spark that answers until it is killed; `process_ended` is known without asking it."""

    remote = False

    def __init__(self, number: int) -> None:
        self.number = number
        self.alive = True
        self.process_ended = False
        self.closed = False

    def new_session(self) -> Any:
        self.answer()
        return Session(self)

    def answer(self) -> None:
        if not self.alive:
            raise ConnectionRefusedError("connection refused")

    def has_ended(self) -> bool:
        return self.process_ended

    def is_lost(self) -> bool:
        return not self.alive

    def close(self) -> None:
        self.closed = True


class Session:
    """A session; also its own `conf`, `sparkContext` and status tracker."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.conf = self.sparkContext = self

    def set(self, name: str, value: str) -> None:
        self.application.answer()

    def setJobGroup(self, name: str, description: str) -> None:  # noqa: N802
        self.application.answer()

    def setLocalProperty(self, name: str, value: str) -> None:  # noqa: N802
        self.application.answer()

    def statusTracker(self) -> Session:  # noqa: N802
        self.application.answer()
        return self

    def cancelJobGroup(self, name: str) -> None:  # noqa: N802
        self.application.answer()

    def getJobIdsForGroup(self, name: str) -> list[int]:  # noqa: N802
        return [1]


class Machine:
    """Starts applications, one after the other; `starts` says how, the default is: it works."""

    def __init__(self) -> None:
        self.applications: list[Application] = []
        self.starts: list[Callable[[], None]] = []

    def start(self) -> Application:
        if self.starts:
            self.starts.pop(0)()
        self.applications.append(Application(len(self.applications) + 1))
        return self.applications[-1]


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def spark(machine: Machine) -> Iterator[Spark]:
    with Spark(machine.start) as opened:
        yield opened


@pytest.fixture
def runner(spark: Spark) -> Iterator[Runner]:
    made = Runner(spark)
    yield made
    made.close()


def number(session: Any) -> int:
    """Which application answers."""
    session.application.answer()
    found: int = session.application.number
    return found


def ask(runner: Runner) -> int:
    return runner.call("wide", (), number)


@contextmanager
def in_flight(runner: Runner, count: int) -> Iterator[list[Future[int]]]:
    """Calls that have begun, and use their session once the `with` ends."""
    begun, go_on = threading.Barrier(count + 1), threading.Event()

    def work(session: Any) -> int:
        begun.wait(PATIENCE)
        assert go_on.wait(PATIENCE)
        return number(session)

    with ThreadPoolExecutor(count) as pool:
        calls = [pool.submit(runner.call, "wide", (), work) for _ in range(count)]
        try:
            begun.wait(PATIENCE)
            yield calls
        finally:
            go_on.set()


def code(call: Future[int]) -> str:
    with pytest.raises(Transient) as raised:
        call.result(PATIENCE)
    return raised.value.code


@pytest.mark.parametrize("count", [1, 4])
def test_calls_that_were_in_flight_leave_no_dead_session(
    runner: Runner, machine: Machine, count: int
) -> None:
    with in_flight(runner, count) as calls:
        machine.applications[0].alive = False
    assert [code(call) for call in calls] == ["spark-lost"] * count
    with in_flight(runner, count) as calls:
        pass
    assert [call.result(PATIENCE) for call in calls] == [2] * count
    assert len(machine.applications) == 2


def test_a_late_failure_of_the_old_one_leaves_the_new_one_alone(
    runner: Runner, machine: Machine
) -> None:
    with in_flight(runner, 2) as calls:
        machine.applications[0].alive = False
        assert ask(runner) == 2
    assert [code(call) for call in calls] == ["spark-lost"] * 2
    assert [ask(runner) for _ in range(3)] == [2, 2, 2]


def test_a_call_that_succeeded_beside_them_hands_no_dead_session_back(
    runner: Runner, machine: Machine
) -> None:
    """Its result was here already when the others failed."""

    def work(session: Any) -> int:
        with in_flight(runner, 1) as calls:
            machine.applications[0].alive = False
        assert code(calls[0]) == "spark-lost"
        return 0

    assert runner.call("wide", (), work) == 0
    assert ask(runner) == 2


def test_whatever_a_broken_connection_raises(runner: Runner, machine: Machine) -> None:
    """Half an answer is not always an error of Spark's."""

    def work(session: Any) -> int:
        machine.applications[0].alive = False
        raise OSError("expected to read 8 bytes, got 3")

    with pytest.raises(Transient) as raised:
        runner.call("wide", (), work)
    assert raised.value.code == "spark-lost"
    assert ask(runner) == 2


def test_an_error_of_the_query_is_reported_as_it_is(runner: Runner, machine: Machine) -> None:
    def work(session: Any) -> int:
        raise UserError("query-failed", "division by zero")

    with pytest.raises(UserError):
        runner.call("wide", (), work)
    assert ask(runner) == 1


def test_one_that_ended_while_nobody_used_it_is_replaced_unseen(
    runner: Runner, machine: Machine
) -> None:
    assert ask(runner) == 1
    machine.applications[0].alive = False
    machine.applications[0].process_ended = True
    assert ask(runner) == 2


def test_a_session_of_a_profile_is_of_the_newest(spark: Spark, machine: Machine) -> None:
    assert number(spark.profile("tiny")) == 1
    machine.applications[0].alive = False
    machine.applications[0].process_ended = True
    assert number(spark.profile("tiny")) == 2


def test_jobs_of_others_are_counted_beside_those_of_the_dead(
    runner: Runner, machine: Machine
) -> None:
    ask(runner)
    machine.applications[0].alive = False
    machine.applications[0].process_ended = True
    ask(runner)
    assert runner.jobs == 1


def fail() -> None:
    raise Transient("spark-failed", "Spark did not start")


def test_a_failed_start_is_forgotten(runner: Runner, machine: Machine) -> None:
    machine.starts = [fail]
    with pytest.raises(Transient) as raised:
        ask(runner)
    assert raised.value.code == "spark-failed"
    assert ask(runner) == 1


def test_calls_wait_for_one_start_and_share_its_failure(runner: Runner, machine: Machine) -> None:
    started, go_on = threading.Event(), threading.Event()

    def fail_slowly() -> None:
        started.set()
        assert go_on.wait(PATIENCE)
        fail()

    machine.starts = [fail_slowly, fail]
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, runner)
        assert started.wait(PATIENCE)
        others = [pool.submit(ask, runner) for _ in range(3)]
        until_waiting(runner, 4)
        go_on.set()
        assert [code(call) for call in (first, *others)] == ["spark-failed"] * 4
    assert machine.starts == [fail], "one start for all four"


def test_calls_wait_for_one_start_and_share_its_application(
    runner: Runner, machine: Machine
) -> None:
    started, go_on = threading.Event(), threading.Event()

    def start_slowly() -> None:
        started.set()
        assert go_on.wait(PATIENCE)

    machine.starts = [start_slowly]
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(ask, runner) for _ in range(4)]
        assert started.wait(PATIENCE)
        until_waiting(runner, 4)
        go_on.set()
        assert [call.result(PATIENCE) for call in calls] == [1] * 4
    assert len(machine.applications) == 1


def until_waiting(runner: Runner, count: int) -> None:
    """Wait until so many callers wait for Spark to start."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        if runner._spark._worker._queue.qsize() == count - 1:
            return
        pause.wait(0.01)
    raise AssertionError("it did not come about")


def test_nobody_waits_for_a_start_beyond_the_end(machine: Machine, runner: Runner) -> None:
    started = threading.Event()
    machine.starts = [lambda: started.wait(PATIENCE) and None]
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(runner.call, "tiny", [], number) for _ in range(2)]
        with runner.ending(0.05):
            for call in calls:
                with pytest.raises(Transient, match="cancelled"):
                    call.result(PATIENCE)
        assert not started.is_set()
        started.set()
    assert runner.call("tiny", [], number) == 1


def test_nothing_begins_after_what_ran_was_cancelled(runner: Runner) -> None:
    """Work that takes several calls ends with the one that was cancelled."""
    began, ended = threading.Event(), threading.Event()

    def wait_for_the_end(_: Any) -> None:
        began.set()
        assert ended.wait(PATIENCE)

    def work() -> None:
        with suppress(Transient):
            runner.call("tiny", [], wait_for_the_end)
        runner.call("tiny", [], number)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        assert began.wait(PATIENCE)
        with runner.ending(0.0):
            threading.Timer(0.2, ended.set).start()
            with pytest.raises(Transient, match="cancelled"):
                done.result(PATIENCE)
    assert runner.call("tiny", [], number) == 1


def test_what_ends_in_time_is_not_cancelled(runner: Runner) -> None:
    with runner.ending(PATIENCE):
        assert runner.call("tiny", [], number) == 1
