"""Databases on the server of the test run, each for one test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from headrace.embedded import EmbeddedServer

DATABASE_NUMBERS = itertools.count(1)


@contextmanager
def extra_database(server: EmbeddedServer) -> Iterator[str]:
    """The connection string of an empty database that exists for the time of a `with`."""
    name = f"test_{next(DATABASE_NUMBERS)}"
    quoted = sql.Identifier(name)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(quoted))
        yield server.dsn_of(name)
        roll_back_prepared(server.dsn_of(name))
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(quoted))


def roll_back_prepared(dsn: str) -> None:
    """End the prepared transactions a test left behind; a database with one cannot be dropped."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        prepared = connection.execute(
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
        ).fetchall()
        for (name,) in prepared:
            connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(name)))
