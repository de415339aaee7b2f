"""Values of every stored type come through a buffer, and out of the table itself, as they are."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from headrace.capture.cut import open_cut
from headrace.errors import NeedsReinit
from headrace.source.connection import Database
from headrace.source.reading import stored_schema
from headrace.types import KINDS
from tests.capture.follower import Follower, read_changes, read_live
from tests.capture.typed_values import COLUMNS, LARGE, REFUSED, VALUES

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


def test_every_kind_is_here() -> None:
    assert set(VALUES) == {kind.name for kind in KINDS}


def test_values_of_every_kind(database: Database, application: Application) -> None:
    application.execute("CREATE TYPE \"My Mood\" AS ENUM ('so so', 'it''s')")
    columns = [f'"{kind}" {declared}' for kind, (declared, _) in COLUMNS.items()]
    application.execute(f"CREATE TABLE t (n integer, {', '.join(columns)})")
    follower = Follower(database, "t")
    follower.tick()
    rows = max(len(values) for _, values in COLUMNS.values())
    expected: dict[str, list[Any]] = {kind: [] for kind in COLUMNS}
    for n in range(rows):
        literals = []
        for kind, (_, values) in COLUMNS.items():
            literal, value = values[n] if n < len(values) else ("NULL", None)
            literals.append(literal)
            expected[kind].append(value)
        application.execute(f"INSERT INTO t VALUES ({n}, {', '.join(literals)})")

    source = follower.source("t")
    with open_cut(database, [source]) as cut:
        changes = read_changes(database, source, follower.snapshot, cut.cut.snapshot)
        live = read_live(database, cut, cut.tables[source.oid])
    assert changes.schema == stored_schema(source.stored, weighted=True)
    assert live.schema == stored_schema(source.stored)
    assert changes["_weight"].to_pylist() == [1] * rows
    for column in source.stored[1:]:
        for data in (changes, live):
            data = data.sort_by(source.stored[0].physical)
            assert same(data[column.physical], expected[column.name]), column.name


def same(data: pa.ChunkedArray, expected: list[Any]) -> bool:
    """Bit for bit: −0.0 is not 0.0, NaN is NaN."""
    if pa.types.is_floating(getattr(data.type, "value_type", data.type)):
        expected = pa.array(expected, data.type).to_pylist()
        return repr(data.to_pylist()) == repr(expected)
    return bool(data.to_pylist() == expected)


def test_large_values(database: Database, application: Application) -> None:
    """Over a megabyte, compressed or not, and unchanged by an update of something else."""
    application.execute("CREATE TABLE t (n integer, a text, b text, c bytea)")
    application.execute("ALTER TABLE t ALTER b SET STORAGE EXTERNAL")
    follower = Follower(database, "t")
    follower.tick()
    row = (1, LARGE, LARGE + "x", LARGE.encode())
    application.execute("INSERT INTO t VALUES (%s, %s, %s, %s)", row)
    application.execute("UPDATE t SET n = 2")
    follower.tick()
    assert follower.bag("t") == {(2, *row[1:]): 1}


@pytest.mark.parametrize("keyed", [True, False], ids=["with key", "without key"])
def test_values_that_do_not_fit(database: Database, application: Application, keyed: bool) -> None:
    declared = sorted({declared for declared, _, _ in REFUSED})
    columns = ", ".join(f'"a {name}" {name}' for name in declared)
    application.execute(f"CREATE TABLE t (id integer{' PRIMARY KEY' * keyed}, {columns})")
    follower = Follower(database, "t")
    follower.tick()
    before, source = follower.snapshot, follower.source("t")
    for name, literal, shown in REFUSED:
        application.execute(f'INSERT INTO t (id, "a {name}") VALUES (1, NULL), (77, {literal})')
        with open_cut(database, [source]) as cut:
            with pytest.raises(NeedsReinit) as refused:
                read_changes(database, source, before, cut.cut.snapshot)
            found = cut.find_misfit(cut.tables[source.oid])
            with pytest.raises(NeedsReinit):
                read_live(database, cut, cut.tables[source.oid])
        for error in (refused.value, found):
            assert error is not None
            assert error.code == "value-does-not-fit"
            assert f'column "a {name}" of public.t' in error.message
            assert error.detail is not None
            assert f"The value is {shown}" in error.detail
            assert "id = 77" in error.detail
            assert (f"a {name} = " in error.detail) is not keyed
        application.execute("DELETE FROM t")
        with open_cut(database, [source]) as cut:
            before = cut.cut.snapshot


def test_a_value_that_came_and_went_is_refused_too(
    database: Database, application: Application
) -> None:
    """Its weights cancel out, but the change as it is read contains it."""
    application.execute("CREATE TABLE t (a numeric)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("INSERT INTO t VALUES ('NaN')")
    application.execute("DELETE FROM t")
    with pytest.raises(NeedsReinit):
        follower.tick()


def test_sessions_settings_do_not_matter(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (d date, z timestamptz, f double precision, b bytea)")
    name = application.execute("SELECT current_database()").fetchone()
    assert name is not None
    for setting, value in (
        ("datestyle", "German"),
        ("timezone", "Asia/Tokyo"),
        ("extra_float_digits", "-15"),
        ("bytea_output", "escape"),
    ):
        statement = sql.SQL("ALTER DATABASE {} SET {} = {}")
        application.execute(
            statement.format(sql.Identifier(name[0]), sql.SQL(setting), sql.Literal(value))
        )
    follower = Follower(database, "t")
    follower.tick()
    application.execute(
        "INSERT INTO t VALUES ('2024-01-02', '2024-01-02 00:00:00+00', 0.1::float8 + 0.2, '\\x00')"
    )
    follower.tick()
    moment = datetime(2024, 1, 2, tzinfo=UTC)
    assert follower.bag("t") == {(date(2024, 1, 2), moment, 0.1 + 0.2, b"\0"): 1}
