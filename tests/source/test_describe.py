"""What PostgreSQL says about queries, without running them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.describe import describe

pytestmark = pytest.mark.postgres


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as application:
        application.execute("""
            CREATE SCHEMA shop;
            CREATE TYPE shop.mood AS ENUM ('a');
            CREATE DOMAIN shop.price AS numeric(10,2);
            CREATE TABLE shop.t (id integer, p shop.price, m shop.mood, v varchar(7), z integer[]);
            CREATE FUNCTION shop.boom() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
                'BEGIN RAISE EXCEPTION ''it was run''; END';
        """)
    with Database(dsn) as database, database.session() as session:
        yield session


def test_columns(connection: psycopg.Connection[Any]) -> None:
    query = "SELECT id, p, m, v, z, count(*) AS n, sum(p), 'x' FROM t GROUP BY 1, 2, 3, 4, 5"
    columns = describe(connection, query, ["shop"])
    assert [(c.name, c.declared, c.type and c.type.kind) for c in columns] == [
        ("id", "integer", "integer"),
        ("p", "numeric(10,2)", "numeric"),
        ("m", "shop.mood", "enum"),
        ("v", "character varying(7)", "character varying"),
        ("z", "integer[]", "array"),
        ("n", "bigint", "bigint"),
        ("sum", "numeric", "numeric"),
        ("?column?", "text", "text"),
    ]
    assert (columns[1].oid, columns[1].typmod) == (1700, (10 << 16 | 2) + 4)
    assert connection.execute("SHOW search_path").fetchone() == ("pg_catalog, pg_temp",)


SELECTS = (
    "SELECT 1",
    "SELECT 1;",
    "select ';'::text <> '' AND 1 > 0 ; -- a ; b",
    "/* ; */ WITH x AS (VALUES (1)) TABLE x ORDER BY 1 LIMIT 1 ;\n\n",
    "(SELECT 1) UNION ALL SELECT 2",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
    "SELECT 1 AS a, 2 AS a",
    "SELECT shop.boom()",
)


def test_one_select(connection: psycopg.Connection[Any]) -> None:
    for query in SELECTS:
        declared = describe(connection, query, ["shop"])[0].declared
        assert declared == ("boolean" if "';'" in query else "integer"), query


COMPLAINTS: tuple[tuple[str, str, str | None], ...] = (
    ("SELECT nothing FROM t", "unknown-column", "Line 1, column 8."),
    ("SELECT 'ü',\n  id\nFROM nowhere", "unknown-table", "Line 3, column 6."),
    ("SELECT * FROM nowhere.t", "unknown-table", "Line 1, column 15."),
    ("SELECT id FROM t a, t b", "ambiguous-column", "Line 1, column 8."),
    ("SELEC 1", "syntax-error", "Line 1, column 1."),
    ("SELECT 1; SELECT 2", "syntax-error", None),
    ("SELECT 1 \0", "syntax-error", None),
    ("SELECT id + true FROM t", "invalid-query", "Line 1, column 11."),
    ("SELECT id FROM t GROUP BY p", "invalid-query", "Line 1, column 8."),
    ("SELECT nothing(id) FROM t", "invalid-query", "Line 1, column 8."),
    ("SELECT $1::integer", "invalid-query", None),
    ("SELECT", "invalid-query", None),
    ("", "invalid-query", None),
    ("DELETE FROM t", "invalid-query", None),
    ("INSERT INTO t VALUES (1) RETURNING id", "invalid-query", None),
    ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "invalid-query", None),
    ("SELECT 1 INTO x", "invalid-query", None),
    ("EXPLAIN SELECT 1", "invalid-query", None),
    ("ROLLBACK", "invalid-query", None),
    ("SELECT 1) AS x, (SELECT 2", "syntax-error", "Line 1, column 9."),
)


def test_complaints(connection: psycopg.Connection[Any]) -> None:
    for query, code, place in COMPLAINTS:
        with pytest.raises(UserError) as refused:
            describe(connection, query, ["shop"])
        assert refused.value.code == code, query
        assert place is None or place in (refused.value.detail or ""), query
        assert connection.execute("SELECT 1").fetchone() == (1,), "the session is as before"
