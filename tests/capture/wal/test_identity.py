"""Which tables can be followed by the log without harm to those who write to them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.capture.wal.identity import (
    ReplicaIdentity,
    TreeMember,
    auto_replica_identity,
    identities,
    judge,
)
from headrace.capture.wal.publication import add_to_publication
from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.introspect import find_table

Application = psycopg.Connection[Any]


def identity_of(database: Database, name: str) -> ReplicaIdentity:
    with database.session() as connection:
        table = find_table(connection, "public", name)
        return identities(connection, [table], database.version)[table.oid]


ALLOWED = {
    "full": ("CREATE TABLE t (a integer, b text); ALTER TABLE t REPLICA IDENTITY FULL", "full", ()),
    "primary key": ("CREATE TABLE t (b text, a integer PRIMARY KEY)", "key", (2,)),
    "two columns": (
        "CREATE TABLE t (a integer, b integer, c integer DEFAULT 0, PRIMARY KEY (c, a))",
        "key",
        (1, 3),
    ),
    "index": (
        "CREATE TABLE t (a integer PRIMARY KEY, b integer NOT NULL DEFAULT 0);"
        "CREATE UNIQUE INDEX i ON t (b); ALTER TABLE t REPLICA IDENTITY USING INDEX i",
        "key",
        (2,),
    ),
    "partitions": (
        "CREATE TABLE t (a integer PRIMARY KEY, b integer) PARTITION BY LIST (a);"
        "CREATE TABLE other (b integer, gone integer, a integer NOT NULL);"
        "ALTER TABLE other DROP COLUMN gone;"
        "ALTER TABLE t ATTACH PARTITION other FOR VALUES IN (1);"
        "CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2)",
        "key",
        (1,),
    ),
    "full partitions": (
        "CREATE TABLE t (a integer PRIMARY KEY) PARTITION BY LIST (a);"
        "CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);"
        "ALTER TABLE t1 REPLICA IDENTITY FULL",
        "full",
        (),
    ),
}


@pytest.mark.postgres
@pytest.mark.parametrize("case", ALLOWED)
def test_what_can_be_followed(database: Database, application: Application, case: str) -> None:
    statements, kind, key = ALLOWED[case]
    application.execute(statements)
    found = identity_of(database, "t")
    assert (found.kind, found.key, found.reason) == (kind, key, None)
    assert (found.index is None) == (kind == "full")
    with database.session() as connection:
        assert add_to_publication(database, find_table(connection, "public", "t"))
    application.execute("INSERT INTO t (a) VALUES (1)")
    application.execute("UPDATE t SET a = 1")
    application.execute("DELETE FROM t")


REFUSED = {
    "no key": ("CREATE TABLE t (a integer)", "no primary key", True),
    "nothing": (
        "CREATE TABLE t (a integer PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY NOTHING",
        "NOTHING",
        True,
    ),
    "index dropped": (
        "CREATE TABLE t (a integer NOT NULL); CREATE UNIQUE INDEX i ON t (a);"
        "ALTER TABLE t REPLICA IDENTITY USING INDEX i; DROP INDEX i",
        "dropped",
        True,
    ),
    "deferrable": (
        "CREATE TABLE t (a integer PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)",
        "no primary key",
        True,
    ),
    "unlogged": ("CREATE UNLOGGED TABLE t (a integer PRIMARY KEY)", "unlogged", False),
    "unkeyed partitions": (
        "CREATE TABLE t (a integer) PARTITION BY LIST (a);"
        "CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1); ALTER TABLE t1 REPLICA IDENTITY FULL",
        "added later",
        False,
    ),
    "one partition": (
        "CREATE TABLE t (a integer PRIMARY KEY) PARTITION BY LIST (a);"
        "CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1); ALTER TABLE t1 REPLICA IDENTITY NOTHING",
        "public.t1 has another",
        True,
    ),
}


@pytest.mark.postgres
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot(database: Database, application: Application, case: str) -> None:
    statements, reason, curable = REFUSED[case]
    application.execute(statements)
    found = identity_of(database, "t")
    assert (found.kind, found.curable) == ("none", curable)
    assert found.reason is not None and reason in found.reason
    assert auto_replica_identity(database, found, "public.t") == curable
    assert identity_of(database, "t").kind == ("full" if curable else "none")


@pytest.mark.postgres
def test_full_is_given_only_where_it_is_needed(
    database: Database, application: Application
) -> None:
    application.execute("CREATE TABLE t (a integer PRIMARY KEY)")
    assert not auto_replica_identity(database, identity_of(database, "t"), "public.t")
    assert identity_of(database, "t").kind == "key"


@pytest.mark.postgres
def test_the_error_for_a_role_that_may_not_alter_says_what_to_run(
    dsn: str, database: Database, application: Application
) -> None:
    application.execute('CREATE TABLE "T x" (a integer); CREATE ROLE wal_reader LOGIN')
    try:
        found = identity_of(database, "T x")
        with Database(dsn, psycopg.conninfo.make_conninfo(dsn, user="wal_reader")) as limited:
            with pytest.raises(UserError) as refused:
                auto_replica_identity(limited, found, "public.T x")
            with database.session() as connection:
                table = find_table(connection, "public", "T x")
            with pytest.raises(UserError) as unpublished:
                add_to_publication(limited, table)
        for error, statement in (
            (refused.value, 'ALTER TABLE public."T x" REPLICA IDENTITY FULL'),
            (unpublished.value, 'ALTER PUBLICATION "headrace" ADD TABLE "public"."T x"'),
        ):
            assert error.code == "capture-not-set-up"
            assert error.hint is not None and statement in error.hint
            application.execute(error.hint.split("\n", 1)[1])
        assert identity_of(database, "T x").kind == "full"
        assert not add_to_publication(database, table)
    finally:
        application.execute("DROP ROLE wal_reader")


@pytest.mark.postgres
def test_generated_columns(database: Database, application: Application) -> None:
    """From 18 on they are published; virtual ones never, and then FULL would stop every UPDATE."""
    application.execute(
        "CREATE TABLE t (a integer PRIMARY KEY, b integer GENERATED ALWAYS AS (a * 2) STORED)"
    )
    found = identity_of(database, "t")
    assert found.kind == ("key" if database.version >= 18 else "none")
    if database.version >= 18:
        application.execute(
            "CREATE TABLE v (a integer, b integer GENERATED ALWAYS AS (a * 2) VIRTUAL)"
        )
        assert not identity_of(database, "v").curable
        application.execute("ALTER TABLE v REPLICA IDENTITY FULL")
        found = identity_of(database, "v")
        assert found.reason is not None and "virtual" in found.reason
        with database.session() as connection:
            table = find_table(connection, "public", "v")
        add_to_publication(database, table)
        application.execute("INSERT INTO v VALUES (1)")
        with pytest.raises(psycopg.Error):
            application.execute("UPDATE v SET a = 2")


PLAIN = TreeMember(True, "r", "p", "d", 7, (1,), (), False, "public.t")


def test_generated_columns_before_18() -> None:
    member = TreeMember(True, "r", "p", "d", 7, (1,), (2,), False, "public.t")
    assert judge((member,), {1, 2}, 17).kind == "none"
    assert judge((member,), {1}, 17).kind == "key", "it is not captured"
    assert judge((member,), {1, 2}, 18).kind == "key"
    assert judge((PLAIN,), {1, 2}, 17).kind == "key"
