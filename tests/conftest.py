"""One PostgreSQL and one Spark for the whole test run; a fresh database for each test."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql

from headrace.embedded import EmbeddedServer
from tests import forms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE_NUMBERS = itertools.count(1)

# How long an example takes says nothing about what it shows.
settings.register_profile("headrace", deadline=None, max_examples=forms.examples(100))
settings.load_profile("headrace")

# Programs of PostgreSQL and of Spark, and the one that starts a PostgreSQL.
SERVERS = frozenset(
    {"postgres", "initdb", "pg_ctl", "spark-submit", "spark-class", "supervisor.py"}
)
# The pure test that is running, which may start none of them.
PURE: list[str] = []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without a server, files all of whose tests need one are not even read."""
    pure = forms.FORM is not forms.Form.FAST or forms.may_be_pure(collection_path)
    return None if pure else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of this run's form, and order them."""
    if wrong := forms.mismarked(items):
        raise pytest.UsageError("mark what uses a server or Spark: " + ", ".join(wrong))
    chosen, others = forms.split(items, forms.FORM)
    if others:
        config.hook.pytest_deselected(items=others)
    forms.longest_first(chosen)
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know whether the test that is running is a pure one."""
    if forms.is_pure(item):
        PURE.append(item.nodeid)
    try:
        return (yield)
    finally:
        PURE.clear()


def refuse_servers(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail a pure test that starts a server or a JVM: its missing marker would be a lie."""
    if event != "subprocess.Popen" or not PURE:
        return
    words = [os.fspath(word) for word in arguments[1]]
    started = {Path(os.fsdecode(word)).name for word in words}
    runs_java = Path(os.fsdecode(words[0])).name == "java" and words[1:] != ["-version"]
    if started & SERVERS or runs_java:
        pytest.fail(f"{PURE[-1]} starts a server: mark it postgres, spark or e2e")


sys.addaudithook(refuse_servers)


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
