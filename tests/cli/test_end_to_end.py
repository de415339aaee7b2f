"""The command line against a real project: one embedded server and one Spark for all of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from headrace.embedded import EmbeddedServer
from headrace.spark.java import find_java
from tests.cli.conftest import Headrace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
QUERY = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"
RUN = "import sys; from headrace.cli.main import main; sys.exit(main(sys.argv[1:]))"
WITHOUT_SPARK = """
import json, sys
from headrace.cli.main import main
codes = [main(arguments) for arguments in json.loads(sys.argv[1])]
print(codes, "pyspark" in sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="headrace-cli-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[EmbeddedServer]:
    """The embedded server of the home folder, which all commands of this module find running."""
    with EmbeddedServer.open(home) as opened:
        yield opened


@pytest.fixture
def sql(
    server: EmbeddedServer, home: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[psycopg.Connection]:
    """The application's connection to a database with one table, `orders`, and no stream table."""
    name = f"test_{time.monotonic_ns()}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    monkeypatch.setenv("HEADRACE_HOME", str(home))
    monkeypatch.setenv("HEADRACE_STORE", str(home / name))
    monkeypatch.setenv("HEADRACE_DSN", server.dsn_of(name))
    with psycopg.connect(server.dsn_of(name), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int, customer text, amount numeric(10, 2))")
        connection.execute("INSERT INTO orders SELECT i, 'c' || i % 3, i FROM generate_series(1, 9) i")
        yield connection


@pytest.fixture
def headrace_on(headrace: Headrace, sql: psycopg.Connection) -> Headrace:
    """The command line on that database."""
    return headrace
