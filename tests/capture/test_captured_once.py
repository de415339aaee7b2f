"""Every way to change a row is captured, once."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


def test_insert_update_delete(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer, b text)")
    application.execute("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (NULL, NULL)")
    follower = Follower(database, "t")
    assert follower.tick().copied == {"t": "the table was never copied"}
    assert follower.bag("t") == {(1, "x"): 2, (None, None): 1}
    assert follower.tick().skipped
    application.execute("INSERT INTO t VALUES (2, 'y'), (1, 'x')")
    application.execute("DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t)")
    application.execute("UPDATE t SET b = 'z' WHERE a IS NULL")
    tick = follower.tick()
    assert tick.copied == {}
    assert tick.changed == 5
    assert follower.bag("t") == {(1, "x"): 2, (2, "y"): 1, (None, "z"): 1}
    assert follower.tick().skipped


def test_a_statement_without_rows_is_no_change(
    database: Database, application: Application
) -> None:
    application.execute("CREATE TABLE t (a integer)")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("UPDATE t SET a = 1")
    application.execute("DELETE FROM t")
    application.execute("INSERT INTO t SELECT 1 WHERE false")
    assert follower.tick().skipped


def test_copy_merge_conflict_and_writable_cte(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    application.execute("CREATE TABLE moved (a integer, b text)")
    follower = Follower(database, "t", "moved")
    follower.tick()
    with application.cursor().copy("COPY t FROM STDIN") as copy:
        for number in range(100):
            copy.write_row((number, "copied"))
    application.execute(
        "INSERT INTO t SELECT n, 'upserted' FROM generate_series(95, 104) n"
        " ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b || t.b"
    )
    application.execute("INSERT INTO t VALUES (1, 'ignored') ON CONFLICT DO NOTHING")
    application.execute(
        "MERGE INTO t USING generate_series(100, 120) AS n ON t.a = n"
        " WHEN MATCHED AND n < 102 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET b = 'merged'"
        " WHEN NOT MATCHED THEN INSERT VALUES (n, 'new')"
    )
    application.execute(
        "WITH gone AS (DELETE FROM t WHERE a < 5 RETURNING *),"
        " changed AS (UPDATE t SET b = 'changed' WHERE a BETWEEN 5 AND 9 RETURNING *)"
        " INSERT INTO moved SELECT * FROM gone UNION ALL SELECT * FROM changed"
    )
    tick = follower.tick()
    assert tick.copied == {}
    assert tick.changed == 100 + (5 * 2 + 5) + (2 + 3 * 2 + 16) + (5 + 5 * 2 + 10)


def test_foreign_key_actions(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE parent (a integer PRIMARY KEY)")
    application.execute(
        "CREATE TABLE child (a integer REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    application.execute(
        "CREATE TABLE loose (a integer REFERENCES parent ON DELETE SET NULL ON UPDATE CASCADE)"
    )
    application.execute("INSERT INTO parent SELECT generate_series(1, 5)")
    application.execute("INSERT INTO child SELECT n % 5 + 1 FROM generate_series(1, 20) n")
    application.execute("INSERT INTO loose SELECT n % 5 + 1 FROM generate_series(1, 20) n")
    follower = Follower(database, "parent", "child", "loose")
    follower.tick()
    application.execute("DELETE FROM parent WHERE a <= 2")
    application.execute("UPDATE parent SET a = a + 100 WHERE a > 3")
    tick = follower.tick()
    assert tick.copied == {}
    assert tick.changed == (2 + 8 + 16) + (4 + 16 + 16)
    assert follower.bag("loose") == {(None,): 8, (3,): 4, (104,): 4, (105,): 4}


def test_triggers_of_the_application(database: Database, application: Application) -> None:
    """A trigger that changes NEW, and one that writes the same table: the stored rows count."""
    application.execute("CREATE TABLE t (a integer, depth integer)")
    application.execute("""
        CREATE FUNCTION double() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.a := NEW.a * 2; RETURN NEW; END';
        CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION double();
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF NEW.depth > 0 THEN INSERT INTO t VALUES (NEW.a, NEW.depth - 1); END IF;
        UPDATE t SET a = a + 1 WHERE depth = 0; RETURN NULL; END';
        CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION again();
    """)
    follower = Follower(database, "t")
    follower.tick()
    application.execute("INSERT INTO t VALUES (1, 3), (5, 1)")
    tick = follower.tick()
    assert tick.copied == {}
    assert follower.bag("t").total() == 6


def test_replica_role(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (a integer)")
    application.execute("CREATE TABLE p (a integer) PARTITION BY LIST (a)")
    application.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    follower = Follower(database, "t", "p")
    follower.tick()
    application.execute("SET session_replication_role = replica")
    application.execute("INSERT INTO t VALUES (1)")
    application.execute("INSERT INTO p VALUES (1)")
    application.execute("INSERT INTO p1 VALUES (1)")
    assert follower.tick().copied == {}
    assert follower.bag("t").total() + follower.bag("p").total() == 3


def test_partitions(database: Database, application: Application) -> None:
    """Routing, DML on a leaf, a row that moves, leaves with another order of columns."""
    application.execute("CREATE TABLE p (a integer, b text) PARTITION BY RANGE (a)")
    application.execute("CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)")
    application.execute("CREATE TABLE high (gone integer, b text, a integer)")
    application.execute("ALTER TABLE high DROP COLUMN gone")
    application.execute("ALTER TABLE p ATTACH PARTITION high FOR VALUES FROM (10) TO (20)")
    application.execute(
        "CREATE TABLE deep PARTITION OF p FOR VALUES FROM (20) TO (40) PARTITION BY LIST (b);"
        "CREATE TABLE deep_x PARTITION OF deep FOR VALUES IN ('x');"
        "CREATE TABLE deep_rest PARTITION OF deep DEFAULT"
    )
    application.execute("INSERT INTO p SELECT n, 'x' FROM generate_series(0, 39) n")
    follower = Follower(database, "p")
    follower.tick()
    application.execute("INSERT INTO p VALUES (5, 'routed')")
    application.execute("INSERT INTO high (a, b) VALUES (15, 'leaf')")
    application.execute("UPDATE p SET a = a + 10 WHERE a < 5")
    application.execute("UPDATE deep SET b = 'moved' WHERE a = 25")
    application.execute("UPDATE low SET b = 'here' WHERE a = 6")
    application.execute("DELETE FROM deep_x WHERE a > 38")
    application.execute(
        "MERGE INTO p USING generate_series(0, 30) AS n ON p.a = n AND p.a % 7 = 0"
        " WHEN MATCHED THEN UPDATE SET a = n + 1"
    )
    tick = follower.tick()
    assert tick.copied == {}
    assert tick.changed > 20


def test_a_leaf_as_source(database: Database, application: Application) -> None:
    """Its rows also come and go through the parent."""
    application.execute("CREATE TABLE p (a integer) PARTITION BY RANGE (a)")
    application.execute("CREATE TABLE low PARTITION OF p FOR VALUES FROM (0) TO (10)")
    application.execute("CREATE TABLE high PARTITION OF p FOR VALUES FROM (10) TO (20)")
    follower = Follower(database, "low")
    follower.tick()
    application.execute("INSERT INTO p SELECT generate_series(0, 19)")
    application.execute("UPDATE p SET a = 19 - a")
    assert follower.tick().copied == {}
    assert follower.bag("low") == {(n,): 1 for n in range(10)}


def test_generated_columns(database: Database, application: Application) -> None:
    application.execute(
        "CREATE TABLE t (a integer, twice integer GENERATED ALWAYS AS (a * 2) STORED)"
    )
    if application.info.server_version >= 180000:
        application.execute("ALTER TABLE t ADD half integer GENERATED ALWAYS AS (a / 2) VIRTUAL")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("INSERT INTO t VALUES (1), (2)")
    application.execute("UPDATE t SET a = 3 WHERE a = 2")
    follower.tick()
    assert follower.bag("t") == {(1, 2): 1, (3, 6): 1}


def test_a_table_without_stored_columns_is_a_bag_of_rows(
    database: Database, application: Application
) -> None:
    application.execute("CREATE TABLE t (a point)")
    application.execute("INSERT INTO t VALUES ('(1,1)'), ('(2,2)')")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("DELETE FROM t WHERE a ~= '(1,1)'")
    application.execute("INSERT INTO t VALUES (NULL), ('(3,3)')")
    follower.tick()
    assert follower.bag("t") == {(): 3}


def test_more_than_a_hundred_columns(database: Database, application: Application) -> None:
    columns = ", ".join(f"c{n} integer" for n in range(130))
    application.execute(f"CREATE TABLE t ({columns})")
    follower = Follower(database, "t")
    follower.tick()
    application.execute("INSERT INTO t (c7, c129) VALUES (7, 129)")
    follower.tick()
    [row] = follower.bag("t")
    assert (row[7], row[129], row[0]) == (7, 129, None)
