"""Whatever happens to capture, the application's statements go through; the source is copied."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.capture import setup
from headrace.capture.layout import schema_ddl
from headrace.errors import Transient
from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]

TABLE = "CREATE TABLE t (a integer, b text, c numeric(8,2))"
PARTITIONED = (
    "CREATE TABLE t (a integer, b text, c numeric(8,2)) PARTITION BY LIST (b);"
    "CREATE TABLE t_x PARTITION OF t FOR VALUES IN ('x');"
    "CREATE TABLE t_rest PARTITION OF t DEFAULT"
)

# What is done, and the columns that are written afterwards.
CHANGES = {
    "rename": ("ALTER TABLE t RENAME COLUMN a TO renamed", "renamed, b"),
    "drop": ("ALTER TABLE t DROP COLUMN a", "c, b"),
    "drop and add": ("ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD COLUMN a integer", "a, b"),
    "retype": ("ALTER TABLE t ALTER COLUMN a TYPE text", "a, b"),
    "widen": ("ALTER TABLE t ALTER COLUMN a TYPE numeric", "a, b"),
    "rename table": ("ALTER TABLE t RENAME TO u", "a, b"),
    "swap names": (
        "ALTER TABLE t RENAME COLUMN a TO x; ALTER TABLE t RENAME COLUMN c TO a;"
        "ALTER TABLE t RENAME COLUMN x TO c",
        "a, b",
    ),
    "buffer dropped": ("DROP TABLE headrace_capture.buffer_{oid}", "a, b"),
    "buffer changed": ("ALTER TABLE headrace_capture.buffer_{oid} DROP COLUMN c1", "a, b"),
    "buffer constrained": (
        "ALTER TABLE headrace_capture.buffer_{oid} ADD CHECK (_weight > 5) NOT VALID",
        "a, b",
    ),
    "notes dropped as well": (
        "DROP TABLE headrace_capture.buffer_{oid}, headrace_capture.recopy_reasons",
        "a, b",
    ),
    "note function dropped as well": (
        "DROP TABLE headrace_capture.buffer_{oid};"
        "DROP FUNCTION headrace_capture.note_recopy_reason(oid, text)",
        "a, b",
    ),
    "all dropped": ("DROP SCHEMA headrace_capture CASCADE", "a, b"),
    "function dropped": ("DROP FUNCTION headrace_capture.capture_{oid}() CASCADE", "a, b"),
}


PARTITIONED_TOO = ("rename", "drop and add", "buffer dropped", "all dropped")


@pytest.mark.parametrize("name", CHANGES)
def test_statements_never_fail(database: Database, application: Application, name: str) -> None:
    statements_never_fail(database, application, TABLE, name)


@pytest.mark.parametrize("name", PARTITIONED_TOO)
def test_statements_on_partitions_never_fail(
    database: Database, application: Application, name: str
) -> None:
    statements_never_fail(database, application, PARTITIONED, name)


def statements_never_fail(
    database: Database, application: Application, ddl: str, name: str
) -> None:
    change, columns = CHANGES[name]
    application.execute(ddl)
    application.execute("INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', 2.5)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute(change.format(oid=follower.oids["t"]))
    table = "u" if name == "rename table" else "t"
    first = columns.split(",")[0]
    application.execute(f"INSERT INTO {table} ({columns}) VALUES (7, 'x'), (8, 'z')")
    application.execute(f"UPDATE {table} SET {first} = NULL WHERE b = 'z'")
    application.execute(f"DELETE FROM {table} WHERE b = 'y'")
    tick = follower.tick()
    assert tick.copied is not None
    assert set(tick.copied) == (set() if name == "rename table" else {"t"})
    application.execute(f"INSERT INTO {table} ({columns}) VALUES (9, 'x')")
    application.execute(f"UPDATE {table} SET b = 'y' WHERE b = 'x'")
    again = follower.tick()
    assert again.copied == {}
    assert again.changed > 0
    assert follower.tick().skipped


def test_an_added_column_changes_nothing(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer)")
    application.execute("INSERT INTO t VALUES (1)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("ALTER TABLE t ADD b integer")
    application.execute("ALTER TABLE t ADD c integer DEFAULT 5")
    assert follower.tick().skipped
    application.execute("INSERT INTO t VALUES (2, 2, 2)")
    assert follower.tick().copied == {}
    assert follower.bag("t") == {(1,): 1, (2,): 1}


def test_types_can_be_dropped(database: Database, application: Application) -> None:
    """A buffer does not depend on the user's types."""
    application.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    application.execute("CREATE DOMAIN short AS varchar(5)")
    application.execute("CREATE TABLE t (a integer, m mood, s short)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("INSERT INTO t VALUES (1, 'good', 'abc')")
    follower.tick()
    assert follower.bag("t") == {(1, "good", "abc"): 1}
    application.execute("ALTER TABLE t DROP COLUMN m, DROP COLUMN s")
    application.execute("DROP TYPE mood")
    application.execute("DROP DOMAIN short")
    application.execute("DROP TABLE t")


def test_a_transaction_can_be_prepared(
    database: Database, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its change could not be recorded."""
    monkeypatch.setattr(setup, "ATTEMPTS", 2)
    monkeypatch.setattr(setup, "LOCK_MILLISECONDS", 50)
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("ALTER TABLE t RENAME COLUMN a TO b")
    application.execute("BEGIN")
    application.execute("INSERT INTO t VALUES (1)")
    application.execute("PREPARE TRANSACTION 'held'")
    with pytest.raises(Transient) as busy:
        follower.tick()
    assert busy.value.code == "source-locked"
    application.execute("COMMIT PREPARED 'held'")
    tick = follower.tick()
    assert tick.copied is not None
    assert set(tick.copied) == {"t"}
    assert follower.bag("t").total() == 1


def test_isolation_levels(database: Database, application: Application, dsn: str) -> None:
    """Serializable transactions do not come to depend on one another through capture."""
    application.execute("CREATE TABLE t (a integer)")
    application.execute("CREATE TABLE u (a integer)")
    follower = Follower(database, "t", "u")
    follower.tick()
    for broken in (False, True):
        if broken:
            application.execute("ALTER TABLE t RENAME COLUMN a TO b")
            application.execute("ALTER TABLE u RENAME COLUMN a TO b")
        with psycopg.connect(dsn) as one, psycopg.connect(dsn) as two:
            for session in (one, two):
                session.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            one.execute("INSERT INTO t VALUES (1)")
            two.execute("INSERT INTO u VALUES (2)")
            one.execute("INSERT INTO t VALUES (3)")
            two.execute("INSERT INTO u VALUES (4)")
            one.commit()
            two.commit()
        follower.tick()
        assert follower.bag("t").total() == follower.bag("u").total() == 2 + 2 * broken


def test_the_users_own_cancel_is_not_swallowed(
    database: Database, application: Application
) -> None:
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    application.execute("SET statement_timeout = '30ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        application.execute("INSERT INTO t SELECT generate_series(1, 10000000)")
    application.execute("RESET statement_timeout")
    assert follower.tick().copied == {"t": "the table was never copied"}
    assert follower.bag("t").total() == 0


def test_a_partition_can_be_made_by_the_owner(database: Database, application: Application) -> None:
    """The row trigger is cloned in the owner's name, who must be allowed our function."""
    application.execute("CREATE ROLE partition_owner")
    try:
        application.execute("CREATE TABLE p (a integer) PARTITION BY RANGE (a)")
        application.execute("CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)")
        application.execute("ALTER TABLE p OWNER TO partition_owner")
        application.execute("GRANT ALL ON SCHEMA public TO partition_owner")
        follower = Follower(database, "p")
        follower.tick()
        application.execute("SET ROLE partition_owner")
        application.execute("CREATE TABLE high PARTITION OF p FOR VALUES FROM (10) TO (20)")
        application.execute("INSERT INTO p VALUES (1), (11)")
        application.execute("RESET ROLE")
        tick = follower.tick()
        assert tick.copied == {
            "p": "the table was truncated or rewritten, or its partitions changed"
        }
        application.execute("INSERT INTO high VALUES (12)")
        assert follower.tick().copied == {}
        assert follower.bag("p") == {(1,): 1, (11,): 1, (12,): 1}
    finally:
        application.execute("DROP OWNED BY partition_owner; DROP ROLE partition_owner")


def test_a_note_does_not_wait_for_a_set_up(
    database: Database, application: Application, dsn: str
) -> None:
    """What all sources share is set up again beside writers whose changes cannot be recorded."""
    application.execute(TABLE)
    follower = Follower(database, "t")
    follower.tick()
    application.execute(f"DROP TABLE headrace_capture.buffer_{follower.oids['t']}")
    application.execute("SET lock_timeout = '2s'")
    with psycopg.connect(dsn) as setting_up:
        for statement in schema_ddl(database.roles[0]):
            setting_up.execute(statement)
        application.execute("INSERT INTO t VALUES (1, 'x', 1)")
        notes = "SELECT count(*) FROM headrace_capture.recopy_reasons"
        assert application.execute(notes).fetchone() == (1,)
    application.execute("DROP INDEX headrace_capture.recopy_reasons_source")
    with psycopg.connect(dsn) as setting_up:
        for statement in schema_ddl(database.roles[0]):
            setting_up.execute(statement)
    index = "SELECT to_regclass('headrace_capture.recopy_reasons_source')::text"
    assert application.execute(index).fetchone() == ("headrace_capture.recopy_reasons_source",)
