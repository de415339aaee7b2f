"""A database in which another role owns the schema, the types and the tables that are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from headrace.embedded import EmbeddedServer

# `note` writes down who runs it. Whoever the trojan runs as may write there and read nothing.
GROUND = """
CREATE TABLE app.ran (who name, session name, how text);
GRANT USAGE ON SCHEMA app TO PUBLIC;
GRANT INSERT ON app.ran TO PUBLIC;
CREATE FUNCTION app.note(how text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO app.ran VALUES (current_user, session_user, how);
    RETURN how;
END
$$;
"""


@dataclass(frozen=True)
class Attacker:
    """The owner of schema `app`, and what its trojans have written down."""

    connection: psycopg.Connection[Any]
    dsn: str

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def ran(self) -> list[tuple[str, str, str]]:
        """Who ran what so far: current user, session user, trojan; then it is forgotten."""
        return self.execute("DELETE FROM app.ran RETURNING *")

    def ran_as_others(self) -> list[tuple[str, str, str]]:
        """What ran with the rights of somebody else."""
        return [row for row in self.ran() if row[0] != "attacker"]


@pytest.fixture
def admin(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A superuser's session."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def attacker(server: EmbeddedServer, admin: psycopg.Connection[Any]) -> Iterator[Attacker]:
    """A role without any right but on its own schema."""
    admin.execute("CREATE ROLE attacker LOGIN")
    admin.execute("CREATE SCHEMA app AUTHORIZATION attacker")
    address = server.dsn_of(admin.info.dbname, "attacker")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(GROUND)
        yield Attacker(connection, address)
    admin.execute("DROP OWNED BY attacker CASCADE")
    admin.execute("DROP ROLE attacker")


ENUM = """
CREATE TYPE app.mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN app.some_mood AS app.mood;
CREATE TABLE app.people (
    id integer PRIMARY KEY, mood app.mood, second app.some_mood, moods app.mood[], cup integer
);
INSERT INTO app.people VALUES
    (1, 'sad', 'sad', '{sad,NULL,happy}', 1), (2, 'ok', NULL, '{}', 2),
    (3, NULL, 'happy', NULL, 3);
"""
# The owner of a type may define its casts, also those that PostgreSQL applies by itself.
CASTS = """
CREATE FUNCTION app.to_text(app.mood) RETURNS text LANGUAGE sql AS $$SELECT app.note('text')$$;
CREATE CAST (app.mood AS text) WITH FUNCTION app.to_text(app.mood) AS IMPLICIT;
CREATE FUNCTION app.to_json(app.mood) RETURNS json LANGUAGE sql AS
    $$SELECT to_json(app.note('json'))$$;
CREATE CAST (app.mood AS json) WITH FUNCTION app.to_json(app.mood);
CREATE FUNCTION app.to_integer(app.mood) RETURNS integer LANGUAGE sql AS
    $$SELECT length(app.note('integer'))$$;
CREATE CAST (app.mood AS integer) WITH FUNCTION app.to_integer(app.mood) AS IMPLICIT;
"""


@pytest.fixture
def people(attacker: Attacker) -> Attacker:
    """Table app.people with enums whose casts are trojans; these were tried."""
    attacker.execute(ENUM)
    attacker.execute(CASTS)
    attacker.execute("SELECT mood::text, mood::integer, to_json(mood) FROM app.people")
    tried = {how for _, _, how in attacker.ran()}
    assert tried == {"text", "integer", "json"}, "the trojans work"
    return attacker
