"""Fixtures: a project with a table of orders, opened twice, for a daemon without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.daemon import loop as service
from headrace.daemon.loop import DaemonLoop

QUERY = "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer"


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (customer bigint, amount bigint)")
        connection.execute("INSERT INTO orders VALUES (1, 1)")
        yield connection


@pytest.fixture
def project(sql: psycopg.Connection, dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        yield opened


@pytest.fixture
def other(project: headrace.Headrace, dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """The same project, opened once more."""
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "THOROUGH", 0.1)


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is not started before it is needed."""
    monkeypatch.setattr(DaemonLoop, "_warm_up", lambda self: None)
