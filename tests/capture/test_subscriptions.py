"""What a subscription writes, which fires no statement-level triggers, is never missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from headrace.embedded import EmbeddedServer
from headrace.embedded.cluster import user_map
from headrace.source.connection import Database
from tests.capture.follower import Follower
from tests.databases import extra_database

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]

# What the publisher does, and what the table of the subscriber has then.
WRITES = {
    "inserts": ("INSERT INTO t VALUES (3, 'c')", [(1, "a"), (2, "b"), (3, "c")]),
    "updates": ("UPDATE t SET b = 'x' WHERE a = 1", [(1, "x"), (2, "b")]),
    "deletes": ("DELETE FROM t WHERE a = 1", [(2, "b")]),
}


@contextmanager
def connects_to_itself(server: EmbeddedServer) -> Iterator[None]:
    """Let the user that runs the server connect to it, as a subscription does."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        row = connection.execute("SELECT current_setting('ident_file')").fetchone()
        assert row is not None
        users = Path(row[0])
        before = users.read_text()
        users.write_text(before + user_map((users.parent.owner(),)))
        connection.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            users.write_text(before)
            connection.execute("SELECT pg_reload_conf()")


@pytest.fixture
def publisher(server: EmbeddedServer, slot: str) -> Iterator[tuple[str, Application]]:
    """The connection string of another database with table t, and a session there."""
    with (
        connects_to_itself(server),
        extra_database(server) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        connection.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
        connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
        yield dsn, connection


@contextmanager
def subscribed(application: Application, dsn: str, slot: str) -> Iterator[None]:
    application.execute(
        sql.SQL(
            "CREATE SUBSCRIPTION s CONNECTION {} PUBLICATION p"
            " WITH (create_slot = false, slot_name = {}, copy_data = false)"
        ).format(sql.Literal(dsn), sql.Identifier(slot))
    )
    try:
        yield
    finally:
        application.execute("DROP SUBSCRIPTION s")


def wait_for(application: Application, query: str, rows: list[tuple[Any, ...]]) -> None:
    deadline = time.monotonic() + 60
    while application.execute(query).fetchall() != rows:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("name", WRITES)
def test_a_subscription_between_two_cuts(
    database: Database,
    application: Application,
    publisher: tuple[str, Application],
    slot: str,
    name: str,
) -> None:
    application.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    application.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    follower = Follower(database, "t")
    follower.tick()
    statement, rows = WRITES[name]
    with subscribed(application, publisher[0], slot):
        publisher[1].execute(statement)
        wait_for(application, "SELECT * FROM t ORDER BY a", rows)
    copied = follower.tick().copied
    assert copied is not None
    assert "subscription" in copied["t"]
    assert follower.bag("t") == dict.fromkeys(rows, 1)
    application.execute("INSERT INTO t VALUES (9, 'z')")
    assert follower.tick().copied == {}


def test_statements_of_triggers_that_a_subscription_fires(
    database: Database, application: Application, publisher: tuple[str, Application], slot: str
) -> None:
    """They fire statement-level triggers, so nothing has to be copied."""
    application.execute("""
        CREATE TABLE t (a integer PRIMARY KEY, b text);
        CREATE TABLE log (a integer);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO public.log VALUES (NEW.a); RETURN NULL; END';
        CREATE TRIGGER n AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();
        ALTER TABLE t ENABLE ALWAYS TRIGGER n;
    """)
    follower = Follower(database, "log")
    follower.tick()
    with subscribed(application, publisher[0], slot):
        publisher[1].execute("INSERT INTO t VALUES (3, 'c'), (4, 'd')")
        wait_for(application, "SELECT * FROM log ORDER BY a", [(3,), (4,)])
    tick = follower.tick()
    assert (tick.changed, tick.copied) == (2, {})
