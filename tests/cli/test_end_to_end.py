"""The command line against real projects: one embedded server and one Spark for all of it."""

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
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from headrace.demo.shop import open_shop
from headrace.demo.views import views
from headrace.embedded import EmbeddedServer
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
print(json.dumps([codes, "pyspark" in sys.modules]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="headrace-cli-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[EmbeddedServer]:
    """The embedded server of the home folder, which all commands of this module find running."""
    with EmbeddedServer.open(folder) as opened:
        yield opened


@pytest.fixture
def home(
    headrace: Headrace,
    folder: Path,
    server: EmbeddedServer,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """The home folder, and Spark running in this process for whoever needs it."""
    monkeypatch.setenv("HEADRACE_HOME", str(folder))
    return folder


@pytest.fixture
def sql(
    home: Path, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[psycopg.Connection]:
    """The application's connection to a new database that the commands use as theirs."""
    name = f"test_{time.monotonic_ns()}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    monkeypatch.setenv("HEADRACE_STORE", str(home / name))
    monkeypatch.setenv("HEADRACE_DSN", server.dsn_of(name))
    with psycopg.connect(server.dsn_of(name), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int, customer text, amount numeric(10, 2))")
        connection.execute(
            "INSERT INTO orders SELECT i, 'c' || i % 3, i FROM generate_series(1, 9) i"
        )
        yield connection


def test_the_first_project_of_the_page(home: Path, headrace: Headrace) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## A first project")[2]
    lines = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    out = {}
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "headrace"
        result = headrace(*arguments)
        assert (line, result.code, result.error) == (line, 0, "")
        out[arguments[0]] = result.out
    assert len(out) > 8
    assert "embedded, host=" in out["init"]
    assert out["create"].startswith("created public.revenue: 2 rows in ")
    assert re.search(r"public.revenue +differential +\+1 −1", out["refresh"])
    assert "equal" in out["verify"]
    assert headrace("ls", "--json").document == {"tables": []}


def test_what_needs_no_spark_starts_none(
    sql: psycopg.Connection, headrace: Headrace, tmp_path: Path
) -> None:
    assert headrace("create", "totals", "-q", QUERY).code == 0
    (tmp_path / "totals.sql").write_text(
        f"CREATE STREAM TABLE totals WITH (tier = warm) AS {QUERY}"
    )
    commands = [
        ["init"],
        ["ls"],
        ["status"],
        ["history", "totals"],
        ["explain", "totals"],
        ["explain", "-q", "SELECT id FROM orders WHERE amount > 3"],
        ["refresh", "totals"],
        ["settings"],
        ["set", "lease_wait", "5"],
        ["graph", "--format", "mermaid"],
        ["strata"],
        ["cycles"],
        ["explain-strata", "totals"],
        ["plan", str(tmp_path)],
        ["apply", str(tmp_path)],
        ["drop", "totals", "--yes"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, json.dumps(commands)],
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stderr.splitlines()[-1]) == [[0] * len(commands), False]


def test_without_java_the_way_out_is_said(sql: psycopg.Connection, headrace: Headrace) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "create", "totals", "-q", QUERY, "--json"],
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    error = json.loads(done.stderr)["error"]
    assert (error["code"], "JAVA_HOME" in error["hint"]) == ("java-missing", True)
    assert headrace("ls", "--json").document == {"tables": []}


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (("create", "t", "-q", "SELEC 1"), "syntax-error", 2),
        (("create", "t", "-q", ""), "invalid-query", 2),
        (("create", "t", "-q", "SELECT nothing FROM orders"), "unknown-column", 2),
        (("create", "t", "-q", "SELECT 1 FROM nothing"), "unknown-table", 2),
        (("create", "t", "-q", "SELECT id FROM orders LIMIT 1"), "unsupported-query", 2),
        (("create", "orders", "-q", QUERY), "name-exists", 2),
        (("create", "pg_x.t", "-q", QUERY), "invalid-name", 2),
        (("create", "t", "-q", QUERY, "--refresh-mode", "SOMETIMES"), "invalid-option", 2),
        (("refresh", "nothing"), "unknown-stream-table", 2),
        (("explain", "nothing"), "unknown-stream-table", 2),
        (("ls", "--dsn", "postgresql://[oops"), "invalid-dsn", 2),
        (("ls", "--dsn", "postgresql://127.0.0.1:1/x"), "server-unreachable", 5),
    ],
)
def test_mistakes(
    arguments: tuple[str, ...],
    code: str,
    exit_code: int,
    sql: psycopg.Connection,
    headrace: Headrace,
) -> None:
    assert headrace("init").code == 0
    result = headrace(*arguments, "--json")
    assert (result.code, result.out) == (exit_code, "")
    assert json.loads(result.error)["error"]["code"] == code
    assert headrace("ls", "--json").document == {"tables": []}


def test_verify_reports_what_differs(sql: psycopg.Connection, headrace: Headrace) -> None:
    assert headrace("create", '"Größe 1"', "-q", QUERY).code == 0
    assert headrace("verify", "--all", "--source").code == 0
    with sql.transaction():
        sql.execute("SET LOCAL headrace.publishing = 'on'")
        sql.execute("""UPDATE "Größe 1" SET n = n + 1 WHERE customer = 'c1'""")
    result = headrace("verify", '"Größe 1"')
    assert result.code == 1
    assert "NOT EQUAL" in result.out
    assert "served public.Größe 1: 1 surplus: customer c1, n 4, total 12.00" in result.out
    assert headrace("verify", "--all", "--json").document["equal"] is False


def test_an_interrupted_create_leaves_nothing(sql: psycopg.Connection, headrace: Headrace) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "create", "totals", "-q", QUERY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not _java_of(process.pid) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert error == "error: stopped; unfinished work was rolled back [stopped]\n"
    assert headrace("ls", "--json").document == {"tables": []}
    assert sql.execute("SELECT to_regclass('public.totals')").fetchone() == (None,)
    assert headrace("create", "totals", "-q", QUERY).code == 0


def _java_of(parent: int) -> bool:
    """Whether a descendant of the process is a JVM; children are listed by thread."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for listed in Path(f"/proc/{parent}/task").glob("*/children"):
            for child in listed.read_text().split():
                name = Path(f"/proc/{child}/comm").read_text().strip()
                if name == "java" or _java_of(int(child)):
                    return True
    return False


def test_the_demo_in_a_kept_home(
    home: Path, server: EmbeddedServer, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a run before left behind, and what its user made of it.
    open_shop(server.dsn, 500)
    best_sellers = views(500)[0]
    assert headrace("create", best_sellers.table, "-q", best_sellers.query).code == 0
    assert headrace("create", "mine", "-q", "SELECT id, city FROM shop.customers").code == 0
    # The demo must not find somebody's own database.
    monkeypatch.setenv("HEADRACE_DSN", "postgresql://127.0.0.1:1/mine")
    options = ("--seconds", "5", "--lines", "2000", "--json", "--home", home)
    result = headrace("demo", *options)
    assert (result.code, result.error) == (0, "")
    document = result.document
    assert (document["equal"], document["home"]) == (True, str(home))
    assert len(document["rounds"]) >= 4
    for kind in ("inserted", "updated", "deleted", "transactions"):
        assert document["written"][kind] > 0
    for table in document["tables"]:
        assert table["live_refreshes"] >= 3
        assert table["idle_spark_jobs"] == 0
        assert len(table["full_seconds"]) == len(table["refresh_seconds"]) > 0
        assert table["verify"]["equal"]
    assert len(document["tables"][-1]["verify"]["compared"]) == 6
    monkeypatch.delenv("HEADRACE_DSN")
    assert len(headrace("ls", "--json").document["tables"]) == 5
    assert headrace("refresh", "mine").code == headrace("verify", "mine").code == 0


def test_the_demo_leaves_a_schema_of_others_alone(
    home: Path, server: EmbeddedServer, headrace: Headrace
) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS shop")
        connection.execute("COMMENT ON SCHEMA shop IS 'mine'")
    before = headrace("ls", "--json").document
    result = headrace("demo", "--home", home)
    assert result.code == 2
    assert "that the demo did not make" in result.error
    assert headrace("ls", "--json").document == before
    assert headrace("demo", "--dsn", "postgresql:///mine").code == 2
