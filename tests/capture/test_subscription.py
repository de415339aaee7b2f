"""A table that a subscription feeds: its changes come without statements."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest
from psycopg import sql

from headrace.embedded import EmbeddedServer
from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


def test_rows_from_a_subscription(
    server: EmbeddedServer, database: Database, application: Application, dsn: str
) -> None:
    """Subscribing changes how the table is captured; from then on nothing is missed."""
    publisher_name = f"{application.info.dbname}_publisher"
    application.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(publisher_name)))
    application.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    follower = Follower(database, "t")
    follower.tick()
    address = server.dsn_of(publisher_name)
    with psycopg.connect(address, autocommit=True) as publisher:
        publisher.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
        publisher.execute("INSERT INTO t VALUES (1, 'copied')")
        publisher.execute("CREATE PUBLICATION p FOR TABLE t")
        publisher.execute("SELECT pg_create_logical_replication_slot('feed', 'pgoutput')")
        try:
            application.execute(
                sql.SQL(
                    "CREATE SUBSCRIPTION s CONNECTION {} PUBLICATION p"
                    " WITH (create_slot = false, slot_name = 'feed')"
                ).format(sql.Literal(address))
            )
            wait_for(application, "SELECT count(*) = 1 FROM t")
            copied = follower.tick().copied
            assert copied is not None
            assert set(copied) == {"t"}, "statement triggers do not see what a subscription does"
            publisher.execute("INSERT INTO t VALUES (2, 'fed'), (3, 'fed')")
            publisher.execute("UPDATE t SET b = 'changed' WHERE a = 2")
            publisher.execute("DELETE FROM t WHERE a = 1")
            wait_for(application, "SELECT count(*) = 2 AND bool_or(b = 'changed') FROM t")
            application.execute("INSERT INTO t VALUES (100, 'by hand')")
            tick = follower.tick()
            assert tick.copied == {}
            assert follower.bag("t") == {(2, "changed"): 1, (3, "fed"): 1, (100, "by hand"): 1}
        finally:
            application.execute("ALTER SUBSCRIPTION s DISABLE")
            application.execute("ALTER SUBSCRIPTION s SET (slot_name = NONE)")
            application.execute("DROP SUBSCRIPTION s")
            drop_slot(publisher)
    application.execute(
        sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(publisher_name))
    )


def wait_for(application: Application, query: str) -> None:
    deadline = time.monotonic() + 60
    while application.execute(query).fetchone() != (True,):
        assert time.monotonic() < deadline, f"never true: {query}"
        time.sleep(0.05)


def drop_slot(publisher: Application) -> None:
    free = "SELECT NOT active FROM pg_replication_slots WHERE slot_name = 'feed'"
    wait_for(publisher, free)
    publisher.execute("SELECT pg_drop_replication_slot('feed')")
