"""One PostgreSQL and one Spark for the whole test run; a fresh database for each test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql

from headrace.embedded import EmbeddedServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE_NUMBERS = itertools.count(1)

# How long an example takes says nothing about what it shows.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """The embedded server of this test run, in a home folder that is removed afterwards."""
    home = Path(tempfile.mkdtemp(prefix="headrace-test-"))
    try:
        with EmbeddedServer.open(home) as opened:
            yield opened
    finally:
        shutil.rmtree(home)


@pytest.fixture
def dsn(server: EmbeddedServer) -> Iterator[str]:
    """The connection string of an empty database that exists for one test."""
    with extra_database(server) as found:
        yield found


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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession | str]:
    """The local Spark session of this test run, or the Spark that HEADRACE_TEST_SPARK names."""
    from headrace.spark.session import local_session

    elsewhere = os.environ.get("HEADRACE_TEST_SPARK")
    if elsewhere is not None and elsewhere.startswith("sc://"):
        yield elsewhere
        return
    session = local_session() if elsewhere is None else local_session(elsewhere)
    yield session
    session.stop()
