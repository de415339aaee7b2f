"""Names of any kind, also those of our own columns, are only names."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql

from headrace.capture.setup import tear_down
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.follower import Follower
from tests.capture.unusual_names import NAMES

pytestmark = pytest.mark.postgres


def test_names_of_columns(database: Database, application: psycopg.Connection[Any]) -> None:
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(("integer", "date")[n % 2]))
        for n, name in enumerate(NAMES)
    )
    for ending in ("", " PARTITION BY HASH (c1)"):
        application.execute("DROP TABLE IF EXISTS t")
        application.execute(sql.SQL("CREATE TABLE t ({})" + ending).format(columns))
        if ending:
            application.execute(
                "CREATE TABLE t_all PARTITION OF t FOR VALUES WITH (MODULUS 1, REMAINDER 0)"
            )
        follower = Follower(database, "t")
        follower.tick()
        values = [f"2024-01-{n + 1:02}" if n % 2 else n for n in range(len(NAMES))]
        marks = sql.SQL(", ").join(sql.Placeholder() * len(values))
        application.execute(sql.SQL("INSERT INTO t VALUES ({})").format(marks), values)
        tick = follower.tick()
        assert (tick.copied, tick.changed) == ({}, 1)
        [row] = follower.bag("t")
        assert [str(value) for value in row] == [str(value) for value in values]


def test_names_of_tables(database: Database, application: psycopg.Connection[Any]) -> None:
    for name in NAMES[:11]:
        schema = f"s {name}"[:63]
        application.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        table = sql.Identifier(schema, name)
        application.execute(sql.SQL("CREATE TABLE {} (a integer)").format(table))
        application.execute(sql.SQL("CREATE TABLE {} (b text)").format(sql.Identifier(name)))
        with database.session() as connection:
            found = find_table(connection, schema, name)
            assert find_table(connection, None, name, [schema, "public"]) == found
            assert find_table(connection, None, name).columns[0].name == "b"
        assert (found.schema, found.name) == (schema, name)


def test_a_captured_table_of_any_name(
    database: Database, application: psycopg.Connection[Any]
) -> None:
    schema, name = 'a "b" {c} $headrace$ %s', "d;\"e'%s{}"
    table = sql.Identifier(schema, name)
    application.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    application.execute(sql.SQL("CREATE TABLE {} (a integer)").format(table))
    follower = Follower(database, name, schema=schema)
    follower.tick()
    application.execute(sql.SQL("INSERT INTO {} VALUES (1)").format(table))
    assert follower.tick().copied == {}
    assert follower.bag(name) == {(1,): 1}
    tear_down(database, follower.oids[name])
