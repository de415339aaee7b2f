"""The Spark that Headrace computes on: local, a cluster, Spark Connect, or a user's own session.

A `Worker` thread makes all calls to Spark for callers that may stop waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as WaitedTooLong
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import HeadraceError, Transient, Unavailable, UserError
from headrace.spark import launch
from headrace.spark.failures import cancelled, translated
from headrace.spark.origins import Launched, Remote, SessionOrigin, UserSession
from headrace.spark.profiles import Profile, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")
POLL_SECONDS = 0.1


class GivenUp(Exception):
    """Nobody waits any more for work that still goes on."""


class Worker:
    """A daemon thread that does one piece of work at a time, in the order it was given.

    All calls to Spark are made here and never in the main thread: an interrupt in the middle of
    a call would leave half an answer on the connection to the JVM. So Ctrl-C ends only the
    waiting, and the caller can then cancel the work. The thread starts with the first work.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        future: Future[Result] = Future()
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
        self._queue.put((future, work))
        return future

    def do(self, work: Callable[[], Result], given_up: Event | None = None) -> Result:
        """Submit and wait; within the worker's own thread, just do it.

        Once `given_up` is set, the waiting ends with GivenUp; the work goes on.
        """
        if current_thread() is self._thread:
            return work()
        future = self.submit(work)
        while given_up is not None and not wait((future,), POLL_SECONDS).done:
            if given_up.is_set():
                raise GivenUp
        return future.result()

    def stop(self) -> None:
        """End the thread after the work it has been given."""
        self._queue.put(None)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            future, work = item
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  the waiting caller gets it
                future.set_exception(error)
            # The thread waits long between two pieces of work: hold no result meanwhile.
            del item, future, work


MEMORY = "2g"
MASTERS = ("local", "spark://", "k8s://", "yarn")


def local_session(master: str = launch.LOCAL, *, memory: str = MEMORY) -> SparkSession:
    """A local session with our settings for the application; the caller stops it."""
    return launch.start(master, memory=memory, counted=False)


@dataclass(eq=False)
class Generation:
    """One Spark application, from its start to its loss, and our sessions of its profiles."""

    origin: SessionOrigin
    profiles: dict[Profile, SparkSession] = field(default_factory=dict)


class Spark:
    """One Spark application, reached at its first use, and our sessions of it.

    An application that is lost is replaced by another generation at the next use. A session belongs
    to its generation: what fails in one of an older generation says nothing about the newer.

    `open` takes None (local[*]), a master URL, a Spark Connect address ("sc://…") or a session,
    and touches nothing yet. A user's session is never stopped nor changed: every session that
    queries run in is our own. `log` is the file that a local JVM writes its log to.
    """

    def __init__(
        self, reach: Callable[[], SessionOrigin], starting: Callable[[], None] = lambda: None
    ) -> None:
        self._reach = reach
        self._starting = starting
        self._generation: Generation | None = None
        # The worker alone makes sessions, so no two threads start an application at once.
        self._worker = Worker("headrace-spark")
        self._failed_starts = 0
        self._failure: HeadraceError | None = None
        self._closed = False
        # While it is set, nobody waits for Spark to start.
        self.given_up = Event()

    @staticmethod
    def open(
        where: SparkSession | str | None = None,
        *,
        memory: str = MEMORY,
        log: Path | None = None,
        starting: Callable[[], None] = lambda: None,
    ) -> Spark:
        """`starting` is called once, when the application is first needed."""
        if where is None:
            return Spark(lambda: Launched(None, memory=memory, log=log), starting)
        if not isinstance(where, str):
            return Spark(lambda: UserSession(where), starting)
        if where.startswith("sc://"):
            return Spark(lambda: Remote(where), starting)
        if not where.startswith(MASTERS):
            # Shown only to its first colon: what follows may be a token.
            shown = where.partition(":")[0]
            raise UserError("invalid-option", f"not a Spark master or address: {shown!r}")
        return Spark(lambda: Launched(where, memory=memory, log=log), starting)

    @property
    def started(self) -> bool:
        return self._generation is not None

    @property
    def remote(self) -> bool:
        """True over Spark Connect: there is no SparkContext, and views are read when run."""
        return self._do(lambda known: self._reached(known).origin.remote)

    @property
    def generation(self) -> Generation | None:
        """The application that runs now; None if there is none, or its process has ended."""
        found = self._generation
        return None if found is None or found.origin.has_ended() else found

    def profile(self, name: Profile) -> SparkSession:
        """The session of a profile, made at its first use."""
        generation = self.generation
        found = None if generation is None else generation.profiles.get(name)
        return found if found is not None else self._do(lambda known: self._made_once(name, known))

    def new_session(self, profile: Profile) -> SparkSession:
        """A further session of a profile, with views of its own."""
        _, session = self.session_of_generation(profile)
        return session

    def session_of_generation(self, profile: Profile) -> tuple[Generation, SparkSession]:
        """A further session of a profile, and the generation that it belongs to."""
        return self._do(lambda known: self._made(profile, known))

    def is_lost(self, generation: Generation) -> bool:
        """Whether that application died under us; then the next use starts or finds another."""
        if self._generation is not generation:
            return True
        return self._worker.do(lambda: self._forget_if_lost(generation))

    def close(self, timeout: float = 10.0) -> None:
        """Stop what we started; what has not stopped after `timeout` seconds dies with the process.

        Safe to call twice, and after an interrupted start.
        """
        if self._closed:
            return
        self._closed = True
        stopped = self._worker.submit(self._stop)
        self._worker.stop()
        try:
            stopped.result(timeout)
        except WaitedTooLong:
            return

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, work: Callable[[int], Result]) -> Result:
        """Have the worker do what may start the application.

        `work` takes the number of starts that had failed when it was requested.
        """
        known = self._failed_starts
        try:
            return self._worker.do(lambda: work(known), self.given_up)
        except GivenUp:
            raise cancelled() from None

    def _reached(self, known_failures: int) -> Generation:
        if self._closed:
            raise RuntimeError("this Spark is closed")
        if self._generation is not None and self._generation.origin.has_ended():
            self._forget_if_lost(self._generation)
        if self._generation is None:
            self._generation = Generation(self._started(known_failures))
        return self._generation

    def _started(self, known_failures: int) -> SessionOrigin:
        # Who waited while another's start failed has the same failure; later calls start again.
        if self._failure is not None and self._failed_starts > known_failures:
            raise self._failure
        self._starting()
        try:
            with translated():
                return self._reach()
        except HeadraceError as error:
            self._failed_starts += 1
            self._failure = error
            raise

    def _made(self, profile: Profile, known_failures: int) -> tuple[Generation, SparkSession]:
        generation = self._reached(known_failures)
        try:
            return generation, _set_up(generation, profile)
        except (Transient, Unavailable):
            if not self._forget_if_lost(generation):
                raise
        generation = self._reached(known_failures)
        return generation, _set_up(generation, profile)

    def _made_once(self, profile: Profile, known_failures: int) -> SparkSession:
        generation = self._reached(known_failures)
        if profile not in generation.profiles:
            generation, session = self._made(profile, known_failures)
            generation.profiles[profile] = session
        return generation.profiles[profile]

    def _forget_if_lost(self, generation: Generation) -> bool:
        if self._generation is generation:
            if not generation.origin.is_lost():
                return False
            self._generation = None
        return True

    def _stop(self) -> None:
        generation, self._generation = self._generation, None
        if generation is not None:
            # What is gone already cannot be stopped: no error.
            with suppress(HeadraceError), translated():
                generation.origin.close()


def _set_up(generation: Generation, profile: Profile) -> SparkSession:
    settings = settings_of(profile)
    with translated():
        session = generation.origin.new_session()
        for key, value in settings.items():
            session.conf.set(key, value)
    return session
