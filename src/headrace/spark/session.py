"""The Spark that Headrace computes on: local, a cluster, Spark Connect, or a user's own session.

A `Worker` thread makes all calls to Spark, for callers that may stop waiting.
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
    """Raised to a caller that stopped waiting for work that is still running."""


class Worker:
    """A daemon thread that does one piece of work at a time, in the order of submission.

    All calls to Spark are made here and never in the main thread: an interrupt during a call would
    leave an incomplete answer on the connection to the JVM. So Ctrl-C only ends the wait, and the
    caller can then cancel the work. The thread starts with the first work.
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
        """Submit the work and wait for its result; run it directly in the worker's own thread.

        When `given_up` is set, the wait ends with GivenUp; the work continues.
        """
        if current_thread() is self._thread:
            return work()
        future = self.submit(work)
        while given_up is not None and not wait((future,), POLL_SECONDS).done:
            if given_up.is_set():
                raise GivenUp
        return future.result()

    def stop(self) -> None:
        """End the thread after the submitted work."""
        self._queue.put(None)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            future, work = item
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  the waiting caller gets it
                future.set_exception(error)
            # The thread may wait for long: keep no result meanwhile.
            del item, future, work


MEMORY = "2g"
MASTERS = ("local", "spark://", "k8s://", "yarn")


def local_session(master: str = launch.LOCAL, *, memory: str = MEMORY) -> SparkSession:
    """Return a local session with our settings; the caller stops it."""
    return launch.start(master, memory=memory, counted=False)


@dataclass(eq=False)
class Generation:
    """One Spark application, from its start to its loss, and our sessions of its profiles."""

    origin: SessionOrigin
    profiles: dict[Profile, SparkSession] = field(default_factory=dict)


class Spark:
    """One Spark application, reached at its first use, and our sessions of it.

    A lost application is replaced by another generation at the next use. A session belongs to its
    generation: a failure in a session of an older one means nothing for the newer.

    `open` takes None (local[*]), a master URL, a Spark Connect address ("sc://…") or a session,
    and starts nothing yet. A user's session is never stopped or changed: queries run in sessions of
    our own. `log` is the log file of a local JVM.
    """

    def __init__(
        self, connect: Callable[[], SessionOrigin], starting: Callable[[], None] = lambda: None
    ) -> None:
        self._connect = connect
        self._starting = starting
        self._generation: Generation | None = None
        # Only the worker creates sessions, so no two threads start an application at once.
        self._worker = Worker("headrace-spark")
        self._failed_starts = 0
        self._failure: HeadraceError | None = None
        self._closed = False
        # While set, no call waits for Spark to start.
        self.given_up = Event()

    @staticmethod
    def open(
        where: SparkSession | str | None = None,
        *,
        memory: str = MEMORY,
        log: Path | None = None,
        starting: Callable[[], None] = lambda: None,
    ) -> Spark:
        """Return a Spark for a location; it calls `starting` before it starts or connects."""
        if where is None:
            return Spark(lambda: Launched(None, memory=memory, log=log), starting)
        if not isinstance(where, str):
            return Spark(lambda: UserSession(where), starting)
        if where.startswith("sc://"):
            return Spark(lambda: Remote(where), starting)
        if not where.startswith(MASTERS):
            # The rest of the address may contain a token.
            scheme = where.partition(":")[0]
            raise UserError("invalid-option", f"not a Spark master or address: {scheme!r}")
        return Spark(lambda: Launched(where, memory=memory, log=log), starting)

    @property
    def started(self) -> bool:
        return self._generation is not None

    @property
    def remote(self) -> bool:
        """Return whether this is Spark Connect, which resolves views when a query runs."""
        return self._do(lambda known_failures: self._reached(known_failures).origin.remote)

    @property
    def generation(self) -> Generation | None:
        """Return the running application; None if there is none, or its process has ended."""
        current = self._generation
        return None if current is None or current.origin.has_ended() else current

    def profile(self, name: Profile) -> SparkSession:
        """Return the session of a profile, created at its first use."""
        generation = self.generation
        session = None if generation is None else generation.profiles.get(name)
        return (
            session
            if session is not None
            else self._do(lambda known_failures: self._made_once(name, known_failures))
        )

    def new_session(self, profile: Profile) -> SparkSession:
        """Return a new session of a profile, with its own views."""
        _, session = self.session_of_generation(profile)
        return session

    def session_of_generation(self, profile: Profile) -> tuple[Generation, SparkSession]:
        """Return a new session of a profile, and its generation."""
        return self._do(lambda known_failures: self._made(profile, known_failures))

    def is_lost(self, generation: Generation) -> bool:
        """Return whether that application was lost; then the next use starts or reaches another."""
        if self._generation is not generation:
            return True
        return self._worker.do(lambda: self._forget_if_lost(generation))

    def close(self, timeout: float = 10.0) -> None:
        """Stop what we started, waiting at most `timeout` seconds.

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
        """Have the worker run `work`, which may start the application.

        `work` takes the number of failed starts at the time of the request.
        """
        known_failures = self._failed_starts
        try:
            return self._worker.do(lambda: work(known_failures), self.given_up)
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
        # Calls that waited for a start that failed get its error; later calls start again.
        if self._failure is not None and self._failed_starts > known_failures:
            raise self._failure
        self._starting()
        try:
            with translated():
                return self._connect()
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
            # A lost application cannot be stopped; that is no error.
            with suppress(HeadraceError), translated():
                generation.origin.close()


def _set_up(generation: Generation, profile: Profile) -> SparkSession:
    settings = settings_of(profile)
    with translated():
        session = generation.origin.new_session()
        for key, value in settings.items():
            session.conf.set(key, value)
    return session
