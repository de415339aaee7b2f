"""What an owner changes and changes back between two cuts leaves no stream table wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.capture.cut import open_cut
from headrace.capture.recopy_reasons import rewrite
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.follower import Follower
from tests.security.conftest import Attacker

pytestmark = pytest.mark.postgres

TABLES = """
CREATE TYPE app.mood AS ENUM ('sad', 'ok');
CREATE TABLE app.parent (id integer, a text, b text, mood app.mood) PARTITION BY RANGE (id);
CREATE TABLE app.old_parent (id integer, a text, b text, mood app.mood);
CREATE TABLE app.things (id integer, a text, b text, mood app.mood);
INSERT INTO app.things VALUES (1, 'a', 'b', 'ok');
"""


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    with Database(dsn) as opened:
        yield opened


def follow_back(attacker: Attacker, database: Database, *statements: str) -> dict[str, str]:
    """Return why the table is copied after the statements; it is followed correctly."""
    attacker.execute(TABLES)
    follower = Follower(database, "things", schema="app")
    follower.tick()
    with attacker.connection.transaction():
        for statement in statements:
            attacker.execute(statement)
    copied = follower.tick().copied
    rows = attacker.execute("SELECT id, a, b, mood::text FROM app.things")
    assert follower.bag("things") == {row: rows.count(row) for row in rows}
    return copied or {}


def test_a_label_that_has_its_name_back(attacker: Attacker, database: Database) -> None:
    copied = follow_back(
        attacker,
        database,
        "ALTER TYPE app.mood RENAME VALUE 'ok' TO 'fine'",
        "INSERT INTO app.things VALUES (2, 'c', 'd', 'fine')",
        "ALTER TYPE app.mood RENAME VALUE 'fine' TO 'ok'",
    )
    assert copied == {"things": "a label of an enum was renamed"}


SWAP = (
    "ALTER TABLE app.things RENAME a TO c",
    "ALTER TABLE app.things RENAME b TO a",
    "ALTER TABLE app.things RENAME c TO b",
)


def test_columns_that_have_their_names_back(attacker: Attacker, database: Database) -> None:
    change = "INSERT INTO app.things VALUES (2, 'c', 'd')"
    assert follow_back(attacker, database, *SWAP, change, *SWAP)


def test_a_column_that_was_set_aside(attacker: Attacker, database: Database) -> None:
    """Another column has its name meanwhile, and is recorded in its place."""
    assert follow_back(
        attacker,
        database,
        "ALTER TABLE app.things RENAME a TO aside",
        "ALTER TABLE app.things ADD a text",
        "INSERT INTO app.things (id, b, a) VALUES (2, 'b', 'recorded')",
        "ALTER TABLE app.things DROP a",
        "ALTER TABLE app.things RENAME aside TO a",
    )


def test_a_table_that_was_a_partition(attacker: Attacker, database: Database) -> None:
    """A statement on the parent does not fire the triggers of its partitions."""
    assert follow_back(
        attacker,
        database,
        "ALTER TABLE app.parent ATTACH PARTITION app.things DEFAULT",
        "INSERT INTO app.parent VALUES (2, 'c', 'd')",
        "ALTER TABLE app.parent DETACH PARTITION app.things",
    )


def test_a_table_that_inherited(attacker: Attacker, database: Database) -> None:
    assert follow_back(
        attacker,
        database,
        "ALTER TABLE app.things INHERIT app.old_parent",
        "UPDATE app.old_parent SET a = 'changed'",
        "ALTER TABLE app.things NO INHERIT app.old_parent",
    )


def test_a_table_that_inherited_one_column(attacker: Attacker, database: Database) -> None:
    attacker.execute("CREATE TABLE app.narrow (id integer)")
    assert follow_back(
        attacker,
        database,
        "ALTER TABLE app.things INHERIT app.narrow",
        "DELETE FROM app.narrow",
        "ALTER TABLE app.things NO INHERIT app.narrow",
    )


def test_a_partition_that_was_detached_is_found_by_its_place(
    attacker: Attacker, database: Database
) -> None:
    """Also where triggers do not count, as for sources that are read from the WAL."""
    attacker.execute(TABLES)
    attacker.execute("ALTER TABLE app.parent ATTACH PARTITION app.things DEFAULT")

    def storage() -> str:
        with database.session() as connection:
            return find_table(connection, "app", "parent").storage

    before = storage()
    attacker.execute("ALTER TABLE app.parent DETACH PARTITION app.things")
    attacker.execute("UPDATE app.things SET a = 'changed'")
    attacker.execute("ALTER TABLE app.parent ATTACH PARTITION app.things DEFAULT")
    assert rewrite(before, storage(), by_triggers=False) is not None


def test_a_table_that_others_inherit_from_is_read_no_more(
    attacker: Attacker, database: Database
) -> None:
    attacker.execute(TABLES)
    follower = Follower(database, "things", schema="app")
    follower.tick()
    source = follower.source("things")
    attacker.execute("CREATE TABLE app.child () INHERITS (app.things)")
    attacker.execute("INSERT INTO app.child VALUES (2, 'not', 'captured')")
    with open_cut(database, [source]) as cut:
        (error,) = cut.forbidden.values()
        assert error.code == "unsupported-source"
        assert error.message == "app.things has tables that inherit from it"
    attacker.execute("DROP TABLE app.child")
    with open_cut(database, [source]) as cut:
        assert cut.forbidden == {}


def test_a_table_of_one_column_that_inherited(attacker: Attacker, database: Database) -> None:
    attacker.execute("CREATE TABLE app.ones (id integer); CREATE TABLE app.parents (id integer)")
    follower = Follower(database, "ones", schema="app")
    follower.tick()
    with attacker.connection.transaction():
        attacker.execute("ALTER TABLE app.ones INHERIT app.parents")
        attacker.execute("INSERT INTO app.ones VALUES (1); UPDATE app.parents SET id = 2")
        attacker.execute("ALTER TABLE app.ones NO INHERIT app.parents")
    assert follower.tick().copied
    assert follower.bag("ones") == {(2,): 1}


def test_a_change_of_one_column_copies_nothing(attacker: Attacker, database: Database) -> None:
    default = "ALTER TABLE app.things ALTER a SET DEFAULT 'x', ALTER a SET NOT NULL"
    assert follow_back(attacker, database, default, "INSERT INTO app.things (id) VALUES (2)") == {}


def test_a_constraint_trigger_with_one_of_our_names(attacker: Attacker, database: Database) -> None:
    """PostgreSQL replaces no constraint trigger: it is dropped first."""
    attacker.execute(TABLES)
    follower = Follower(database, "things", schema="app")
    follower.tick()
    attacker.execute("DROP TRIGGER headrace_capture_insert ON app.things")
    attacker.execute(
        "CREATE FUNCTION app.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    )
    attacker.execute(
        "CREATE CONSTRAINT TRIGGER headrace_capture_insert AFTER INSERT ON app.things"
        " FOR EACH ROW EXECUTE FUNCTION app.nothing()"
    )
    attacker.execute("INSERT INTO app.things VALUES (2, 'c', 'd')")
    assert follower.tick().copied
    attacker.execute("INSERT INTO app.things VALUES (3, 'e', 'f')")
    assert follower.tick().copied == {}
    assert sum(follower.bag("things").values()) == 3
