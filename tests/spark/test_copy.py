"""A source is copied exactly, in one snapshot, without showing its password."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from headrace.errors import HeadraceError, NeedsReinit, Transient
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from headrace.source.snapshot import Range, page_ranges
from headrace.source.table import SourceTable
from headrace.spark.copy import copy_table, read_table
from headrace.spark.run import Runner
from headrace.spark.session import Spark
from tests.spark.values import bag, read_back

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

# A column for every kind, with the values at the edges of what is stored.
KINDS = {
    "boolean": ["true", "false", "NULL"],
    "smallint": ["-32768", "32767", "NULL"],
    "integer": ["-2147483648", "2147483647", "NULL"],
    "bigint": ["-9223372036854775808", "9223372036854775807", "NULL"],
    "real": ["'-0'", "'NaN'", "'Infinity'", "'1e-45'", "3.1415927", "NULL"],
    "double precision": ["'-0'", "'NaN'", "'-Infinity'", "'5e-324'", "0.1", "NULL"],
    "numeric": ["0.0000000001", "-123456789012345678.9", "1.5000000000000", "NULL"],
    "numeric(5,2)": ["-999.99", "0.01", "NULL"],
    "numeric(38,0)": ["'" + "9" * 38 + "'", "NULL"],
    "text": ["''", "' '", "E'ä\\'\"\\\\\\n\\t'", "'𝄞'", "'NULL'", "NULL"],
    "varchar(5)": ["''", "'ab  '", "NULL"],
    "char(5)": ["''", "'ab'", "NULL"],
    "bytea": ["''", "'\\x00ff'", "NULL"],
    "date": ["'0001-01-01'", "'1582-10-10'", "'9999-12-31'", "NULL"],
    "timestamp": [
        "'0001-01-01'",
        "'1582-10-10 01:02:03.000004'",
        "'9999-12-30 23:59:59.999999'",
        "NULL",
    ],
    "timestamptz": [
        "'0001-01-02+00'",
        "'2024-03-31 02:30+02'",
        "'9999-12-30 23:59:59.999999+00'",
        "NULL",
    ],
    "uuid": ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "NULL"],
    "mood": ["'glad'", "'Sad ''n'' sorry'", "NULL"],
    "jsonb": ['\'{"b": [1, 2.50], "a": null}\'', "'null'", "NULL"],
}


@contextmanager
def cut(database: Database) -> Iterator[tuple[psycopg.Connection[tuple[object, ...]], str]]:
    """An open transaction and the name of its snapshot."""
    with database.connect() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        yield connection, str(row[0])


def copied(
    runner: Runner, database: Database, name: str, folder: Path, parts: int = 4, epoch: int = 5
) -> pa.Table:
    """All rows of a table, copied in a snapshot of this moment."""
    with cut(database) as (connection, snapshot):
        table = find_table(connection, "public", name)
        ranges = page_ranges(connection, table, parts)
        copy_table(runner, database.conninfo, snapshot, table, ranges, epoch, str(folder))
    return read_back(folder)


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    with Database(dsn) as opened:
        yield opened


@pytest.fixture
def application(dsn: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def test_every_kind_is_copied_exactly(
    runner: Runner,
    database: Database,
    application: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
) -> None:
    height = max(len(values) for values in KINDS.values())
    columns = ", ".join(f'"{number} {kind}" {kind}' for number, kind in enumerate(KINDS))
    rows = ", ".join(
        "(" + ", ".join(values[row % len(values)] for values in KINDS.values()) + ")"
        for row in range(height)
    )
    application.execute("CREATE TYPE mood AS ENUM ('glad', 'Sad ''n'' sorry')")
    application.execute(f"CREATE TABLE t ({columns})")
    application.execute(f"INSERT INTO t VALUES {rows}")
    found = copied(runner, database, "t", tmp_path / "t")

    table = find_table(application, "public", "t")
    assert len(table.stored) == len(KINDS)
    assert found.column_names == ["_epoch", "_weight", *(c.physical for c in table.stored)]
    for column in table.stored:
        assert column.type is not None
        assert found.schema.field(column.physical).type == column.type.arrow
    assert set(found["_epoch"].to_pylist()) == {5}
    assert set(found["_weight"].to_pylist()) == {1}

    back = expected(application, table)
    assert bag(found.drop_columns(["_epoch", "_weight"])) == bag(back)


def expected(connection: psycopg.Connection[tuple[object, ...]], table: SourceTable) -> pa.Table:
    """The rows as psycopg reads them: a second way that shares nothing with the copy."""
    names = ", ".join(
        column.type.read.format(column=f'"{column.name}"')
        if column.type is not None and column.type.kind not in ("numeric", "jsonb")
        else f'"{column.name}"' + ("::text" if column.type and column.type.kind == "jsonb" else "")
        for column in table.stored
    )
    rows = connection.execute(f"SELECT {names} FROM t").fetchall()
    arrays = [
        pa.array([row[place] for row in rows], column.type.arrow)
        for place, column in enumerate(table.stored)
        if column.type is not None
    ]
    return pa.table(arrays, names=[column.physical for column in table.stored])


def test_rows_written_meanwhile_are_neither_lost_nor_doubled(
    runner: Runner,
    database: Database,
    application: psycopg.Connection[tuple[object, ...]],
    dsn: str,
    tmp_path: Path,
) -> None:
    """The copy is the snapshot's rows exactly, however writers move rows between pages."""
    application.execute("CREATE TABLE t (id bigint, pad text) WITH (fillfactor = 50)")
    application.execute("INSERT INTO t SELECT n, repeat('x', 200) FROM generate_series(1, 40000) n")
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            number = 0
            while not stop.is_set():
                number += 1
                connection.execute("INSERT INTO t VALUES (%s, 'new')", [-number])
                connection.execute(
                    "UPDATE t SET pad = repeat('y', 300) WHERE id %% 97 = %s", [number % 97]
                )
                connection.execute("DELETE FROM t WHERE id %% 101 = %s", [number % 101])

    writer = threading.Thread(target=write)
    writer.start()
    progress: list[tuple[int, int]] = []
    try:
        with cut(database) as (connection, snapshot):
            table = find_table(connection, "public", "t")
            ranges = page_ranges(connection, table, 6)
            assert len(ranges) >= 4
            copy_table(
                runner,
                database.conninfo,
                snapshot,
                table,
                ranges,
                1,
                str(tmp_path / "t"),
                lambda done, total: progress.append((done, total)),
            )
            rows = connection.execute("SELECT id, pad FROM public.t").fetchall()
    finally:
        stop.set()
        writer.join()
    found = read_back(tmp_path / "t")
    assert sorted(zip(found["c1"].to_pylist(), found["c2"].to_pylist(), strict=True)) == sorted(
        rows
    )
    assert progress == sorted(progress)
    assert progress[-1] == (len(ranges), len(ranges))


def test_all_leaves_of_a_partitioned_table_are_read(
    runner: Runner,
    database: Database,
    application: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
) -> None:
    application.execute("CREATE TABLE t (id bigint) PARTITION BY RANGE (id)")
    assert copied(runner, database, "t", tmp_path / "none").num_rows == 0
    application.execute('CREATE TABLE "leaf ""one""" PARTITION OF t FOR VALUES FROM (0) TO (5)')
    application.execute("CREATE TABLE two PARTITION OF t DEFAULT")
    application.execute("INSERT INTO t SELECT generate_series(1, 10)")
    found = copied(runner, database, "t", tmp_path / "some")
    assert sorted(found["c1"].to_pylist()) == list(range(1, 11))


def test_tables_of_no_rows_no_columns_and_seventy_columns(
    runner: Runner,
    database: Database,
    application: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
) -> None:
    application.execute("CREATE TABLE empty (a int)")
    application.execute("CREATE TABLE bare (p point)")
    application.execute("INSERT INTO bare VALUES (NULL), ('(1,2)')")
    columns = ", ".join(f'"C {number}" int DEFAULT {number}' for number in range(70))
    application.execute(f"CREATE TABLE broad ({columns})")
    application.execute("INSERT INTO broad DEFAULT VALUES")
    assert copied(runner, database, "empty", tmp_path / "empty").num_rows == 0
    bare = copied(runner, database, "bare", tmp_path / "bare")
    assert bare.to_pydict() == {"_epoch": [5, 5], "_weight": [1, 1]}
    broad = copied(runner, database, "broad", tmp_path / "broad")
    assert list(broad.to_pylist()[0].values()) == [5, 1, *range(70)]


def test_a_value_that_does_not_fit_is_not_stored(
    runner: Runner,
    database: Database,
    application: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
) -> None:
    application.execute("CREATE TABLE t (d date)")
    application.execute("INSERT INTO t VALUES ('infinity')")
    with pytest.raises(NeedsReinit) as raised:
        copied(runner, database, "t", tmp_path / "t")
    assert raised.value.code == "value-does-not-fit"


def test_a_snapshot_that_is_gone_and_a_locked_table_may_be_tried_again(
    runner: Runner,
    database: Database,
    application: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
) -> None:
    application.execute("CREATE TABLE t (a int)")
    with cut(database) as (connection, gone):
        table = find_table(connection, "public", "t")
        ranges = page_ranges(connection, table, 1)
    with pytest.raises(Transient) as raised:
        copy_table(runner, database.conninfo, gone, table, ranges, 1, str(tmp_path / "gone"))
    assert raised.value.code == "cut-interrupted"

    with cut(database) as (_, snapshot), application.transaction():
        application.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Transient) as raised:
            copy_table(
                runner, database.conninfo, snapshot, table, ranges, 1, str(tmp_path / "busy")
            )
    assert raised.value.code == "source-locked"


def test_the_password_is_not_shown(
    runner: Runner, ours: Spark, spark: object, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Neither in a plan, nor in an error, nor in Spark's log."""
    from headrace.spark.launch import process_folder

    secret = "geheim-1234"
    conninfo = f"host=127.0.0.1 port=1 user=u password={secret} connect_timeout=2"
    table = SourceTable(1, "public", "t", ())
    ranges = (Range("t", "true", 1),)
    session = ours.profile("wide")
    frame = read_table(session, conninfo, "0-1", table, ranges, 1)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for mode in ("simple", "extended", "codegen", "cost", "formatted"):
            frame.explain(mode=mode)
    assert "headrace_postgres" in shown.getvalue()
    with pytest.raises(HeadraceError) as raised:
        copy_table(runner, conninfo, "0-1", table, ranges, 1, str(tmp_path / "t"))
    log = process_folder() / "spark.log"
    places = [
        shown.getvalue(),
        str(raised.value),
        repr(raised.value.__cause__),
        *capfd.readouterr(),
    ]
    for place in [*places, log.read_text(), str(frame), frame.schema.json()]:
        assert secret not in place
    assert raised.value.code == "connection-lost"
