"""Ways to write rows, and rows that are hard to read back: the same in every mode."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.capture.unusual_names import NAMES
from tests.ingest.world import MODES, World

pytestmark = pytest.mark.postgres
modes = pytest.mark.parametrize("mode", MODES)


@modes
def test_values_that_are_stored_apart(world: World) -> None:
    """Those that an UPDATE leaves as they are are not in its log; some have more than 1 MB."""
    world.run(
        "CREATE TABLE t (a integer PRIMARY KEY, big text, small text, n integer)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT n, repeat(chr(96 + n), 3000000), repeat('s', 5000), 0"
        " FROM generate_series(1, 3) n",
    )
    world.follow("t")
    world.run("UPDATE t SET n = n + 1")
    world.follows()
    world.together(
        "UPDATE t SET big = repeat('z', 1500000) WHERE a = 1",
        "UPDATE t SET n = n + 1 WHERE a = 1",
        "UPDATE t SET a = a + 10",
        "UPDATE t SET small = NULL WHERE a = 12",
        "UPDATE t SET big = NULL WHERE a = 13",
        "UPDATE t SET n = n + 1",
    )
    world.follows()
    world.run("INSERT INTO t SELECT 20, repeat('n', 2000000)", "UPDATE t SET n = 1 WHERE a = 20")
    world.run("DELETE FROM t WHERE a = 11")
    world.follows()
    assert world.rows("t") == 3


@modes
def test_keys_that_are_stored_apart(world: World) -> None:
    world.run(
        "CREATE TABLE t (k text PRIMARY KEY, n integer)",
        "ALTER TABLE t ALTER k SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT repeat(chr(96 + n), 2600), n FROM generate_series(1, 4) n",
    )
    world.follow("t")
    world.run("UPDATE t SET n = n + 1")
    assert world.follows().changed == {"t": 8}
    world.run("UPDATE t SET k = repeat('y', 2600) WHERE n = 2", "UPDATE t SET n = 9 WHERE n = 2")
    world.run("DELETE FROM t WHERE n = 3")
    assert world.follows().changed["t"] >= 3


@modes
def test_every_way_to_write(world: World) -> None:
    world.run(
        "CREATE TABLE parent (id integer PRIMARY KEY)",
        "CREATE TABLE child (id integer PRIMARY KEY, parent integer DEFAULT 0"
        " REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE other (id integer PRIMARY KEY,"
        " parent integer REFERENCES parent ON DELETE SET NULL ON UPDATE CASCADE)",
    )
    world.follow("parent", "child", "other")
    with world.application.cursor().copy("COPY parent FROM STDIN") as copy:
        for number in range(100):
            copy.write_row((number,))
    assert world.follows().changed["parent"] == 100
    world.run(
        "INSERT INTO child SELECT n, n FROM generate_series(0, 99) n",
        "INSERT INTO other SELECT n, n FROM generate_series(0, 99) n",
    )
    assert world.follows().changed == {"parent": 0, "child": 100, "other": 100}
    world.run(
        "INSERT INTO child VALUES (1, 2), (200, 3) ON CONFLICT (id)"
        " DO UPDATE SET parent = EXCLUDED.parent"
    )
    assert world.follows().changed["child"] == 3
    world.run("INSERT INTO child VALUES (1, 9) ON CONFLICT DO NOTHING")
    assert not world.cut().cut
    world.run(
        "MERGE INTO child USING generate_series(190, 201) AS n ON child.id = n"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (n, 5)"
    )
    assert world.follows().changed["child"] == 12
    world.run("DELETE FROM parent WHERE id = 5", "UPDATE parent SET id = 500 WHERE id = 6")
    assert world.follows().changed == {"parent": 3, "child": 14, "other": 4}
    world.run(
        "WITH gone AS (DELETE FROM other WHERE id > 90 RETURNING id),"
        " more AS (INSERT INTO child SELECT id + 1000, 7 FROM gone RETURNING id)"
        " UPDATE other SET parent = 8 WHERE id = 80"
    )
    assert world.follows().changed == {"parent": 0, "child": 9, "other": 11}


TRIGGERS = """
CREATE FUNCTION change_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.b := upper(NEW.b);
    RETURN CASE WHEN NEW.b = 'NEVER' THEN NULL ELSE NEW END;
END $$;
CREATE FUNCTION write_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.a < 100 THEN
        INSERT INTO t VALUES (NEW.a + 100, 'echo');
        UPDATE t SET b = b || '+' WHERE a = NEW.a;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER a_before BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION change_new();
CREATE TRIGGER z_after AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION write_more();
"""


@modes
def test_triggers_of_the_application(world: World) -> None:
    """The rows that are stored in the end are captured, whoever made them what they are."""
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b text)", TRIGGERS)
    world.follow("t")
    world.run("INSERT INTO t VALUES (1, 'x'), (2, 'never'), (3, 'y')")
    assert world.follows().changed["t"] >= 4
    assert world.rows("t") == 4
    world.run("UPDATE t SET b = 'never' WHERE a = 1", "UPDATE t SET b = 'changed' WHERE a = 3")
    assert world.follows().changed["t"] == 2
    world.run("SET session_replication_role = replica", "INSERT INTO t VALUES (7, 'quiet')")
    assert world.follows().changed["t"] == 1
    world.run("RESET session_replication_role")


@modes
def test_names_of_any_kind(world: World) -> None:
    schema, name = 'a "b" {c} $headrace$ %s', "d;\"e'%s{}.✓"
    table = sql.Identifier(schema, name)
    columns = sql.SQL(", ").join(sql.SQL("{} integer").format(sql.Identifier(one)) for one in NAMES)
    application: psycopg.Connection = world.application
    application.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    application.execute(
        sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}, {}))").format(
            table, columns, sql.Identifier(NAMES[0]), sql.Identifier(NAMES[2])
        )
    )
    longest = sql.Identifier("ü" * 31)
    application.execute(sql.SQL('CREATE TABLE {} ("select" integer PRIMARY KEY)').format(longest))
    world.follow(table.as_string(), longest.as_string())
    insert = sql.SQL("INSERT INTO {} SELECT {} FROM generate_series(1, 3) AS n").format(
        table, sql.SQL(", ").join([sql.SQL("n")] * len(NAMES))
    )
    application.execute(insert)
    application.execute(sql.SQL("INSERT INTO {} VALUES (1)").format(longest))
    assert world.follows().changed == {name: 3, "ü" * 31: 1}
    update = sql.SQL("UPDATE {} SET {quoted} = {quoted} + 10, {more} = 7").format(
        table, quoted=sql.Identifier(NAMES[0]), more=sql.Identifier(NAMES[8])
    )
    application.execute(update)
    application.execute(sql.SQL("DELETE FROM {}").format(longest))
    assert world.follows().changed == {name: 6, "ü" * 31: 1}
