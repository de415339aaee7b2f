"""The question that a daemon asks many times a second."""

from __future__ import annotations

import psycopg
import pytest

from headrace.capture.pending import has_pending_changes, question
from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres


def test_a_dropped_table_is_a_pending_change(
    database: Database, application: psycopg.Connection
) -> None:
    application.execute("CREATE TABLE t (a integer); CREATE TABLE u (a integer)")
    follower = Follower(database, "t", "u")
    follower.tick()
    with database.session() as connection:
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        asked = question(list(follower.oids.values()), row[0])
        assert not has_pending_changes(connection, asked)
        application.execute("DROP TABLE u")
        assert has_pending_changes(connection, asked)
