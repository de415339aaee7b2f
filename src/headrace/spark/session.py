"""The Spark that Headrace computes on: local, a cluster, Spark Connect, or a user's own session."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as WaitedTooLong
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError, Transient, Unavailable, UserError
from headrace.spark import launch
from headrace.spark.failures import translated
from headrace.spark.origins import Given, Launched, Origin, Remote
from headrace.spark.profiles import Profile, settings_of
from headrace.spark.worker import Worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = "2g"
MASTERS = ("local", "spark://", "k8s://", "yarn")


def local_session(master: str = launch.LOCAL, *, memory: str = MEMORY) -> SparkSession:
    """A local session with our settings for the application; the caller stops it."""
    return launch.start(master, memory=memory, counted=False)


class Spark:
    """One Spark application, reached at its first use, and our sessions of it.

    `open` takes None (local[*]), a master URL, a Spark Connect address ("sc://…") or a session,
    and touches nothing yet. A user's session is never stopped nor changed: every session that
    queries run in is our own. `log` is the file that a local JVM writes its log to.
    """

    def __init__(
        self, reach: Callable[[], Origin], starting: Callable[[], None] = lambda: None
    ) -> None:
        self._reach = reach
        self._starting = starting
        self._origin: Origin | None = None
        self._profiles: dict[Profile, SparkSession] = {}
        # The worker alone makes sessions, so no two threads start an application at once.
        self._worker = Worker("headrace-spark")
        self._closed = False

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
            return Spark(lambda: Given(where), starting)
        if where.startswith("sc://"):
            return Spark(lambda: Remote(where), starting)
        if not where.startswith(MASTERS):
            # Shown only to its first colon: what follows may be a token.
            shown = where.partition(":")[0]
            raise UserError("invalid-option", f"not a Spark master or address: {shown!r}")
        return Spark(lambda: Launched(where, memory=memory, log=log), starting)

    @property
    def started(self) -> bool:
        return self._origin is not None

    @property
    def remote(self) -> bool:
        """True over Spark Connect: there is no SparkContext, and views are read when run."""
        return self._worker.do(self._reached).remote

    def profile(self, name: Profile) -> SparkSession:
        """The session of a profile, made at its first use."""
        found = self._profiles.get(name)
        return found if found is not None else self._worker.do(lambda: self._made_once(name))

    def new_session(self, profile: Profile) -> SparkSession:
        """A further session of a profile, with views of its own."""
        return self._worker.do(lambda: self._made(profile))

    def is_lost(self) -> bool:
        """Whether the application died under us; then its next use starts or finds another."""
        return self._worker.do(self._forget_if_lost)

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

    def _reached(self) -> Origin:
        if self._closed:
            raise RuntimeError("this Spark is closed")
        if self._origin is None:
            self._starting()
            with translated():
                self._origin = self._reach()
        return self._origin

    def _made(self, profile: Profile) -> SparkSession:
        try:
            return self._set_up(profile)
        except (Transient, Unavailable):
            if not self._forget_if_lost():
                raise
        return self._set_up(profile)

    def _set_up(self, profile: Profile) -> SparkSession:
        settings = settings_of(profile)
        with translated():
            session = self._reached().new_session()
            for key, value in settings.items():
                session.conf.set(key, value)
        return session

    def _made_once(self, profile: Profile) -> SparkSession:
        if profile not in self._profiles:
            self._profiles[profile] = self._made(profile)
        return self._profiles[profile]

    def _forget_if_lost(self) -> bool:
        if self._origin is None or not self._origin.is_lost():
            return False
        self._profiles.clear()
        self._origin = None
        return True

    def _stop(self) -> None:
        self._profiles.clear()
        origin, self._origin = self._origin, None
        if origin is not None:
            # What is gone already cannot be stopped: no error.
            with suppress(HeadraceError), translated():
                origin.close()
