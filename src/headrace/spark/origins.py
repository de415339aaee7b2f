"""Origins of sessions: an application that we start, a Spark Connect server, or a user."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import urlsplit

from headrace.errors import Unavailable, UserError
from headrace.spark import launch
from headrace.spark.jvm import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_PORT = 15002
ANSWER_SECONDS = 5.0


class SessionOrigin(Protocol):
    """Creates sessions of our own; `remote`: over Spark Connect."""

    remote: bool

    def new_session(self) -> SparkSession: ...

    def has_ended(self) -> bool:
        """Return whether its process is known to have ended, without a call to Spark."""

    def is_lost(self) -> bool:
        """Return whether its sessions are lost for good; a new origin may reach another Spark."""

    def close(self) -> None:
        """Stop the application or sessions that we started, and only these."""


class Launched:
    """An application in this process, on a master or local."""

    remote = False

    def __init__(self, master: str | None, *, memory: str, log: Path | None) -> None:
        if master is not None and master.startswith("spark://"):
            # The masters of a high-availability cluster are listed: spark://a:7077,b:7077
            places = master.removeprefix("spark://").split(",")
            _require_answer([f"spark://{place}" for place in places], 7077, "Spark's master")
        self._application = launch.acquire(master, memory=memory, log=log)

    def new_session(self) -> SparkSession:
        return self._application.session.newSession()

    def has_ended(self) -> bool:
        process = self._application.process
        return process is not None and process.poll() is not None

    def is_lost(self) -> bool:
        if not self.has_ended() and answers(self._application.session):
            return False
        launch.abandon(self._application)
        return True

    def close(self) -> None:
        launch.release(self._application)


class Remote:
    """A Spark Connect server; every session is newly created and released at the end."""

    remote = True

    def __init__(self, address: str) -> None:
        # Without this check the client would retry for ten minutes.
        _require_answer([address], CONNECT_PORT, "Spark Connect")
        self._address = address
        self._sessions: list[SparkSession] = []

    def new_session(self) -> SparkSession:
        from pyspark.sql import SparkSession

        session: SparkSession = SparkSession.builder.remote(self._address).create()
        self._sessions.append(session)
        return session

    def has_ended(self) -> bool:
        return False

    def is_lost(self) -> bool:
        # Calls to a lost server are retried for minutes, so the address is checked first.
        try:
            _require_answer([self._address], CONNECT_PORT, "Spark Connect")
        except Unavailable:
            return True
        # Every session is checked: the server may have been restarted between two of them.
        return not all(map(answers, self._sessions))

    def close(self) -> None:
        while self._sessions:
            self._sessions.pop().stop()


class UserSession:
    """A user's session: new sessions are derived from it, and it is not changed."""

    def __init__(self, session: SparkSession) -> None:
        self.remote = type(session).__module__.startswith("pyspark.sql.connect")
        if not self.remote and not hasattr(session, "newSession"):
            raise UserError("invalid-option", f"not a Spark session: {type(session).__name__}")
        self._session = session
        self._clones: list[SparkSession] = []

    def new_session(self) -> SparkSession:
        if not self.remote:
            return self._session.newSession()
        # The server registers a session with its first request.
        _ = self._session.version
        clone = self._session.cloneSession()  # type: ignore[attr-defined]
        # A clone lacks an attribute that its `stop` reads.
        clone.release_session_on_close = True
        self._clones.append(clone)
        return cast("SparkSession", clone)

    def has_ended(self) -> bool:
        return False

    def is_lost(self) -> bool:
        return not answers(self._session)

    def close(self) -> None:
        while self._clones:
            self._clones.pop().stop()


def _require_answer(addresses: list[str], default_port: int, name: str) -> None:
    """Raise `spark-unreachable` unless one of the addresses accepts a connection.

    Messages have host and port only: a Spark Connect address may contain a token.
    """
    tried = []
    for address in addresses:
        try:
            parts = urlsplit(address)
            place = (parts.hostname or "", parts.port or default_port)
        except ValueError as error:
            raise UserError(
                "invalid-option", "invalid Spark address: the port is not a number"
            ) from error
        try:
            socket.create_connection(place, ANSWER_SECONDS).close()
            return
        except OSError as error:
            tried.append(f"{place[0]}:{place[1]}: {error.strerror or error}")
    raise Unavailable("spark-unreachable", f"{name} does not answer", detail="; ".join(tried))
