"""Whether a Spark Connect server is gone is found out without waiting for its client."""

from __future__ import annotations

import socket
from typing import cast

import pytest
from pyspark.sql import SparkSession

from headrace.spark.origins import Remote


class Session:
    """A session of a server: it counts the questions, and answers them or not."""

    def __init__(self, *, alive: bool) -> None:
        self.alive = alive
        self.asked = 0

    @property
    def conf(self) -> Session:
        return self

    def get(self, _: str) -> str:
        self.asked += 1
        if not self.alive:
            raise ConnectionError("the session is closed")
        return "true"


def remote(server: socket.socket, *sessions: Session) -> Remote:
    made = Remote(f"sc://127.0.0.1:{server.getsockname()[1]}")
    made._sessions.extend(cast("SparkSession", session) for session in sessions)
    return made


def test_no_session_is_asked_where_nobody_listens() -> None:
    session = Session(alive=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        origin = remote(server, session)
        assert not origin.is_lost()
    assert session.asked == 1
    assert origin.is_lost()
    assert session.asked == 1


@pytest.mark.parametrize("alive", [(False, True), (True, False), (False, False)])
def test_a_server_that_forgot_one_session_is_another(alive: tuple[bool, bool]) -> None:
    """It was restarted between the two, or ended the one that was idle."""
    sessions = [Session(alive=each) for each in alive]
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert remote(server, *sessions).is_lost()
    assert sum(session.asked for session in sessions if not session.alive) == 1, "one wait at most"
