"""What an owner changes and changes back between two cuts leaves no stream table wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.source.connection import Database
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
