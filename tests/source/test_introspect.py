"""What is found out about tables, and which are refused as sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from headrace.embedded import EmbeddedServer
from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.introspect import find_table, find_tables, inspect
from headrace.source.rights import RIGHTS
from headrace.source.table import SourceTable
from headrace.source.views import find_views
from headrace.types import Type

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


@pytest.fixture
def application(dsn: str) -> Iterator[Application]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with Database(dsn) as database, database.session() as session:
        yield session


def refusal(connection: psycopg.Connection[Any], schema: str | None, name: str) -> UserError:
    with pytest.raises(UserError) as refused:
        find_table(connection, schema, name)
    return refused.value


def types(table: SourceTable) -> dict[str, Type | None]:
    return {column.name: column.type for column in table.columns}


def test_columns(application: Application, connection: psycopg.Connection[Any]) -> None:
    application.execute("""
        CREATE TYPE "Mood" AS ENUM ('a');
        CREATE DOMAIN short AS varchar(10);
        CREATE DOMAIN shorter AS short CHECK (length(value) < 5);
        CREATE DOMAIN price AS numeric(10,2) NOT NULL;
        CREATE TABLE t (
            a integer NOT NULL, gone integer, b shorter, c price, d "Mood", e numeric, f integer[],
            g char(3), h bpchar, i bit(3), j int4range, k timestamptz(0), l smallserial,
            m "Mood"[], n price[], o numeric(5,1)[], p char(3)[], q int2vector, r text[]
        );
        ALTER TABLE t DROP COLUMN gone;
    """)
    table = find_table(connection, None, "t")
    assert types(table) == {
        "a": Type("integer"),
        "b": Type("character varying", length=10, folds=True),
        "c": Type("numeric", precision=10, scale=2, declared=True),
        "d": Type("enum", enum='public."Mood"'),
        "e": Type("numeric", precision=38, scale=18),
        "f": Type("array", element=Type("integer")),
        "g": Type("character", length=3, folds=True),
        "h": None,
        "i": None,
        "j": None,
        "k": Type("timestamptz"),
        "l": Type("smallint"),
        "m": Type("array", element=Type("enum", enum='public."Mood"')),
        "n": None,
        "o": Type("array", element=Type("numeric", precision=5, scale=1, declared=True)),
        "p": None,
        "q": None,
        "r": Type("array", element=Type("text", folds=True)),
    }
    assert [column.number for column in table.columns] == [1, *range(3, 20)]
    assert [column.name for column in table.columns if column.not_null] == ["a", "l"]
    assert table.column("b") is not None
    assert {c.name: c.declared for c in table.columns}["d"] == 'public."Mood"'


def test_collations(application: Application, connection: psycopg.Connection[Any]) -> None:
    application.execute("""
        CREATE TABLE t (
            a text COLLATE "C", b text COLLATE "POSIX", c text COLLATE ucs_basic, d text
        )
    """)
    found = types(find_table(connection, None, "t")).items()
    row = application.execute(
        "SELECT datlocprovider, datcollate FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    assert row is not None
    by_bytes = row[0] == "b" or row[1] in ("C", "POSIX", "C.UTF-8", "C.utf8")
    ordered = {name: type_ is not None and type_.ordered for name, type_ in found}
    assert ordered == {"a": True, "b": True, "c": True, "d": by_bytes}
    folds = {name: type_ is not None and type_.folds for name, type_ in found}
    assert folds == {"a": True, "b": True, "c": folds["c"], "d": row[1] in ("C", "POSIX")}


def test_collations_of_libraries(
    application: Application, connection: psycopg.Connection[Any]
) -> None:
    try:
        application.execute("""
            CREATE COLLATION loose (provider = icu, locale = 'und', deterministic = false);
            CREATE TABLE t (a text COLLATE loose, b text COLLATE "en-x-icu");
        """)
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this server is built without ICU")
    assert types(find_table(connection, None, "t")) == {
        "a": None,
        "b": Type("text", ordered=False),
    }


def test_keys(application: Application, connection: psycopg.Connection[Any]) -> None:
    application.execute("""
        CREATE TABLE t (
            a integer, b integer NOT NULL, c integer NOT NULL, d integer, e text,
            UNIQUE (b, c), PRIMARY KEY (a), UNIQUE (d), UNIQUE NULLS NOT DISTINCT (d, e),
            UNIQUE (c) DEFERRABLE, UNIQUE (b) INCLUDE (e)
        );
        CREATE UNIQUE INDEX ON t (c) WHERE b > 0;
        CREATE UNIQUE INDEX ON t ((b + c));
        CREATE INDEX ON t (c);
    """)
    assert find_table(connection, None, "t").keys == ((1,), (2, 3), (4, 5), (2,))


def test_a_not_null_that_is_not_valid(
    application: Application, connection: psycopg.Connection[Any]
) -> None:
    if application.info.server_version < 180000:
        pytest.skip("PostgreSQL 18 has NOT NULL constraints that are not checked")
    application.execute("CREATE TABLE t (a integer UNIQUE)")
    application.execute("INSERT INTO t VALUES (NULL)")
    application.execute("ALTER TABLE t ADD CONSTRAINT n NOT NULL a NOT VALID")
    table = find_table(connection, None, "t")
    assert (table.columns[0].not_null, table.keys) == (False, ())


def test_row_triggers(application: Application, connection: psycopg.Connection[Any]) -> None:
    application.execute("""
        CREATE TABLE t (a integer);
        CREATE TABLE p (a integer) PARTITION BY LIST (a);
        CREATE TABLE leaf PARTITION OF p DEFAULT;
        CREATE TABLE fed (a integer);
        CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p
            WITH (connect = false, slot_name = NONE);
    """)
    application.execute(
        "INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate)"
        " SELECT s.oid, 'fed'::regclass, 'r' FROM pg_subscription s"
    )
    try:
        found = {
            name: find_table(connection, None, name).row_triggers
            for name in ("t", "p", "leaf", "fed")
        }
        assert found == {"t": False, "p": True, "leaf": True, "fed": True}
    finally:
        application.execute("DROP SUBSCRIPTION s")


def test_what_is_no_source(application: Application, connection: psycopg.Connection[Any]) -> None:
    application.execute("""
        CREATE TABLE parent (a integer);
        CREATE TABLE child () INHERITS (parent);
        CREATE VIEW v AS SELECT 1 AS a;
        CREATE MATERIALIZED VIEW m AS SELECT 1 AS a;
        CREATE SCHEMA headrace;
        CREATE TABLE headrace.served (a integer);
        CREATE FOREIGN DATA WRAPPER w;
        CREATE SERVER s FOREIGN DATA WRAPPER w;
        CREATE FOREIGN TABLE f (a integer) SERVER s;
        CREATE TABLE p (a integer) PARTITION BY LIST (a);
        CREATE FOREIGN TABLE pf PARTITION OF p DEFAULT SERVER s;
    """)
    for schema, name in (
        (None, "parent"),
        (None, "v"),
        (None, "m"),
        (None, "f"),
        (None, "p"),
        ("headrace", "served"),
        (None, "pg_class"),
        ("information_schema", "sql_features"),
    ):
        assert refusal(connection, schema, name).code == "unsupported-source", name
    application.execute("CREATE TEMPORARY TABLE own (a integer)")
    assert refusal(connection, None, "own").code == "unknown-table"
    [(temporary,)] = application.execute(
        "SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'own'"
    ).fetchall()
    assert refusal(connection, temporary, "own").code == "unsupported-source"
    assert refusal(connection, None, "nowhere").code == "unknown-table"
    assert refusal(connection, "nowhere", "parent").code == "unknown-table"


def test_rights(server: EmbeddedServer, application: Application) -> None:
    application.execute("""
        CREATE ROLE reader LOGIN;
        CREATE SCHEMA closed;
        CREATE TABLE closed.t (a integer, b integer);
        CREATE TABLE t (a integer, b integer);
        GRANT SELECT (a) ON t TO reader;
        GRANT SELECT ON closed.t TO reader;
    """)
    try:
        address = server.dsn_of(application.info.dbname, "reader")
        with Database(address) as database, database.session() as connection:
            for schema in ("public", "closed"):
                error = refusal(connection, schema, "t")
                assert error.code == "permission-denied"
                grant = (error.hint or "").split(": ", 1)[1]
                application.execute(grant)
                assert find_table(connection, schema, "t").stored
    finally:
        application.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_row_security(server: EmbeddedServer, application: Application) -> None:
    """A policy stops us; it never thins what we see."""
    application.execute("""
        CREATE ROLE limited LOGIN;
        CREATE TABLE t (a integer);
        INSERT INTO t VALUES (1), (2);
        GRANT SELECT ON t TO limited;
        ALTER TABLE t ENABLE ROW LEVEL SECURITY;
        CREATE POLICY part ON t USING (a = 1);
    """)
    try:
        with Database(server.dsn_of(application.info.dbname, "limited")) as database:
            with database.session() as connection:
                error = refusal(connection, None, "t")
                assert error.code == "row-security"
                assert 'ALTER ROLE "limited" BYPASSRLS' in (error.hint or "")
            with pytest.raises(UserError) as denied:
                database.arrow("SELECT * FROM public.t")
            assert denied.value.code == "permission-denied"
            application.execute("ALTER ROLE limited BYPASSRLS")
            with database.session() as connection:
                assert find_table(connection, None, "t").stored
    finally:
        application.execute("DROP OWNED BY limited; DROP ROLE limited")


def test_inspect_is_of_the_snapshot(
    application: Application, connection: psycopg.Connection[Any]
) -> None:
    application.execute("CREATE TABLE t (a integer)")
    before = find_table(connection, None, "t")
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")
        application.execute("TRUNCATE t; ALTER TABLE t RENAME COLUMN a TO b; CREATE TABLE u ()")
        assert inspect(connection, [before.oid]) == {before.oid: before}
    after = inspect(connection, [before.oid, 1])
    assert list(after) == [before.oid]
    assert after[before.oid].storage != before.storage
    assert after[before.oid].columns[0].name == "b"


def test_all_names_of_a_query_are_found_at_once(
    application: Application, connection: psycopg.Connection[Any]
) -> None:
    application.execute("CREATE SCHEMA one")
    application.execute("CREATE SCHEMA two")
    for table in ("one.a", "two.a", "two.b", "public.b", "public.c"):
        application.execute(f"CREATE TABLE {table} (id int)")
    names = [(None, "a"), (None, "b"), (None, "c"), ("two", "a"), ("two", "b")]
    found = find_tables(connection, names, ("one", "two", "public"))
    assert {name: (table.schema, table.name) for name, table in found.items()} == {
        (None, "a"): ("one", "a"),
        (None, "b"): ("two", "b"),
        (None, "c"): ("public", "c"),
        ("two", "a"): ("two", "a"),
        ("two", "b"): ("two", "b"),
    }
    with pytest.raises(UserError, match='"d" does not exist in schema one, public'):
        find_tables(connection, [(None, "a"), (None, "d")], ("one", "public"))


def test_rights_of_many_tables_are_found_in_one_pass(
    application: Application, connection: psycopg.Connection[Any]
) -> None:
    """What users have made is not gone through again for every table."""
    tables = 30
    for number in range(tables):
        application.execute(f"CREATE TABLE t{number} (a int, b int DEFAULT {number}, c serial)")
        application.execute(f"CREATE INDEX ON t{number} (a) WHERE b > 0")
    oids = [find_table(connection, None, f"t{number}").oid for number in range(tables)]
    cursor = psycopg.ClientCursor(connection)
    explained = b"EXPLAIN (ANALYZE, FORMAT JSON) " + RIGHTS.as_bytes(connection)
    row = cursor.execute(explained, {"oids": oids}).fetchone()
    assert row is not None

    def loops(node: dict[str, Any]) -> Iterator[int]:
        yield node["Actual Loops"]
        for child in node.get("Plans", ()):
            yield from loops(child)

    assert max(loops(row[0][0]["Plan"])) <= tables


def test_settings_of_the_database_change_nothing(application: Application, dsn: str) -> None:
    """What is read is compared with what was read before, whatever is set meanwhile."""
    application.execute("""
        CREATE TYPE mood AS ENUM ('sad', 'glad');
        CREATE TABLE t (id integer PRIMARY KEY, m mood, d mood[], amount numeric(10, 2));
        CREATE VIEW v AS SELECT id, m, amount IS NULL AS unknown FROM t WHERE m = 'sad';
        CREATE TABLE g (a integer[]);
        INSERT INTO g SELECT ARRAY[1] FROM generate_series(1, 1000);
        CREATE INDEX ON g USING gin (a);
    """)

    def read() -> tuple[Any, ...]:
        with Database(dsn) as database, database.session() as connection:
            views = find_views(connection, [("public", "v")])
            connection.execute("SET enable_seqscan = off")
            rows = connection.execute("SELECT NULL = NULL, count(*) FROM public.g WHERE a @> '{1}'")
            return find_table(connection, None, "t"), views, rows.fetchall()

    before = read()
    assert before[-1] == [(None, 1000)]
    for setting in (
        "quote_all_identifiers = on",
        "transform_null_equals = on",
        "gin_fuzzy_search_limit = 1",
    ):
        name = sql.Identifier(application.info.dbname)
        application.execute(sql.SQL("ALTER DATABASE {} SET {}").format(name, sql.SQL(setting)))
        assert read() == before, setting
        application.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(name))
