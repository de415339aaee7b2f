"""Objects of ours that somebody else made first, or put something into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.capture.setup import set_up
from headrace.catalog import PostgresCatalog
from headrace.embedded import EmbeddedServer
from headrace.errors import HeadraceError, UserError
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.follower import Follower
from tests.security.conftest import Attacker

pytestmark = pytest.mark.postgres

Admin = psycopg.Connection[Any]
TABLE = "CREATE TABLE app.things (id integer, name text)"
TRAP = """
CREATE FUNCTION app.trap() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM app.note('trigger'); RETURN NEW; END$$;
"""
# What capture keeps, as a copy of it that somebody else made.
SQUATTED = """
CREATE SCHEMA headrace_capture;
CREATE TABLE headrace_capture.sources (
    source oid PRIMARY KEY, definition text NOT NULL, unlogged boolean NOT NULL,
    max_buffer_bytes bigint NOT NULL, acknowledged_epoch bigint NOT NULL DEFAULT 0,
    acknowledged_at timestamptz, copy_due text, copy_due_xid xid8
);
CREATE TABLE headrace_capture.recopy_reasons (
    source oid NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id(), reason text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE headrace_capture.alive (source oid PRIMARY KEY);
CREATE TABLE headrace_capture.announced (source oid PRIMARY KEY, epoch bigint NOT NULL);
CREATE TRIGGER trap BEFORE INSERT ON headrace_capture.sources
    FOR EACH ROW EXECUTE FUNCTION app.trap();
GRANT ALL ON SCHEMA headrace_capture TO PUBLIC;
GRANT ALL ON ALL TABLES IN SCHEMA headrace_capture TO PUBLIC;
"""


@pytest.fixture
def creator(attacker: Attacker, admin: Admin) -> Attacker:
    """The attacker, who may create schemas in the database."""
    admin.execute(f'GRANT CREATE ON DATABASE "{admin.info.dbname}" TO attacker')
    attacker.execute(TABLE)
    attacker.execute(TRAP)
    return attacker


def refusal_of_set_up(dsn: str, setup: str | None = None) -> HeadraceError:
    with Database(dsn, setup) as database:
        with database.session() as connection:
            table = find_table(connection, "app", "things")
        with pytest.raises(UserError) as refused:
            set_up(database, table)
    assert refused.value.code == "untrusted-object"
    return refused.value


def test_a_squatted_capture_schema(creator: Attacker, admin: Admin, dsn: str) -> None:
    creator.execute(SQUATTED)
    admin.execute(
        "INSERT INTO headrace_capture.sources (source, definition, unlogged, max_buffer_bytes)"
        " VALUES (1, '', false, 1)"
    )
    assert creator.ran_as_others(), "the trojan works"
    error = refusal_of_set_up(dsn)
    assert error.message == "schema headrace_capture belongs to role attacker"
    assert "DROP SCHEMA" in (error.hint or "")
    assert creator.ran() == []
    admin.execute("DROP SCHEMA headrace_capture CASCADE")
    with Database(dsn) as database:
        follower = Follower(database, "things", schema="app")
        follower.tick()
        creator.execute("INSERT INTO app.things VALUES (1, 'x')")
        assert follower.tick().copied == {}, "the hint helps"
    assert creator.ran() == []


def test_a_squatted_catalog(creator: Attacker, admin: Admin, dsn: str, tmp_path: Path) -> None:
    creator.execute(
        "CREATE SCHEMA headrace;"
        "CREATE TABLE headrace.migrations (number integer, name text, applied_at timestamptz);"
        "CREATE TRIGGER trap BEFORE INSERT ON headrace.migrations"
        " FOR EACH ROW EXECUTE FUNCTION app.trap();"
        "GRANT ALL ON SCHEMA headrace TO PUBLIC;"
        "GRANT ALL ON headrace.migrations TO PUBLIC"
    )
    with pytest.raises(UserError) as refused, headrace.connect(dsn=dsn, home=tmp_path):
        pass
    assert refused.value.code == "untrusted-object"
    assert refused.value.message == "schema headrace belongs to role attacker"
    assert creator.ran() == []


# Whatever comes into a schema of ours later, with what it is reported as.
INTRUDERS = {
    "ALTER TABLE {0} OWNER TO attacker": "belongs to role attacker",
    "CREATE TRIGGER trap BEFORE INSERT ON {0} FOR EACH ROW EXECUTE FUNCTION app.trap()": (
        "trigger trap of"
    ),
    "CREATE RULE trap AS ON INSERT TO {0} DO ALSO SELECT app.note('rule')": "rule trap of",
    "CREATE POLICY trap ON {0} USING (app.note('policy') IS NOT NULL)": "row level security of",
    "ALTER TABLE {0} ENABLE ROW LEVEL SECURITY": "row level security of",
    "ALTER TABLE {0} ADD COLUMN trap text DEFAULT app.note('default')": (
        "calls function app.note(text) of role attacker"
    ),
    "ALTER TABLE {0} ADD CHECK (app.note('check') IS NOT NULL)": (
        "calls function app.note(text) of role attacker"
    ),
    "GRANT TRIGGER ON {0} TO attacker": "role attacker may create triggers on",
    "GRANT CREATE ON SCHEMA {1} TO PUBLIC": "role PUBLIC may create objects in schema",
    "CREATE FUNCTION {1}.note_recopy_reason(integer, text) RETURNS void LANGUAGE sql AS '';"
    "ALTER FUNCTION {1}.note_recopy_reason(integer, text) OWNER TO attacker": (
        "belongs to role attacker"
    ),
}


@pytest.mark.parametrize("intruder", INTRUDERS)
@pytest.mark.parametrize("place", ["capture", "catalog"])
def test_what_came_in_later(
    attacker: Attacker, admin: Admin, dsn: str, intruder: str, place: str
) -> None:
    """A project that starts, or sets something up, finds it."""
    attacker.execute(TABLE)
    attacker.execute(TRAP)
    with Database(dsn) as database:
        PostgresCatalog.open(database.connect).close()
        Follower(database, "things", schema="app").tick()
    schema, table = (
        ("headrace_capture", "announced") if place == "capture" else ("headrace", "settings")
    )
    admin.execute(intruder.format(f"{schema}.{table}", schema))
    attacker.ran()
    if place == "capture":
        error = refusal_of_set_up(dsn)
    else:
        with Database(dsn) as database, pytest.raises(UserError) as refused:
            PostgresCatalog.open(database.connect)
        error = refused.value
    assert INTRUDERS[intruder] in error.message
    assert (error.code, schema in error.message) == ("untrusted-object", True)
    assert attacker.ran() == []


def test_a_setup_role_of_its_own_is_trusted(
    server: EmbeddedServer, attacker: Attacker, admin: Admin
) -> None:
    """It owns what capture consists of; the runtime role trusts it as long as it is named."""
    attacker.execute(TABLE)
    attacker.execute("GRANT SELECT ON app.things TO PUBLIC")
    admin.execute(
        "CREATE ROLE preparer LOGIN; CREATE ROLE reader LOGIN; GRANT attacker TO preparer"
    )
    admin.execute(f'GRANT CREATE ON DATABASE "{admin.info.dbname}" TO preparer')
    runtime, setup = (server.dsn_of(admin.info.dbname, name) for name in ("reader", "preparer"))
    try:
        with Database(runtime, setup) as database:
            follower = Follower(database, "things", schema="app")
            follower.tick()
            attacker.execute("INSERT INTO app.things VALUES (1, 'x')")
            assert follower.tick().copied == {}
        with Database(runtime) as database, pytest.raises(UserError) as refused:
            Follower(database, "things", schema="app")
        assert refused.value.message == "schema headrace_capture belongs to role preparer"
        assert "--setup-dsn" in (refused.value.hint or "")
    finally:
        admin.execute("DROP OWNED BY preparer, reader CASCADE; DROP ROLE preparer, reader")


@pytest.fixture
def event_trigger(attacker: Attacker, admin: Admin) -> Iterator[None]:
    """One that a superuser made of a function that another role may still replace."""
    attacker.execute(
        "CREATE FUNCTION app.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM app.note('event trigger'); END$$;"
        "CREATE TABLE app.things (id integer, name text)"
    )
    admin.execute("CREATE EVENT TRIGGER trap ON ddl_command_end EXECUTE FUNCTION app.on_ddl()")
    yield
    admin.execute("DROP EVENT TRIGGER trap")


def test_an_event_trigger_that_another_role_can_replace(
    attacker: Attacker, admin: Admin, dsn: str, event_trigger: None
) -> None:
    admin.execute("CREATE TABLE public.tried (a integer)")
    assert attacker.ran_as_others(), "it works"
    with Database(dsn) as database:
        with database.session() as connection:
            table = find_table(connection, "app", "things")
        with pytest.raises(HeadraceError) as refused:
            set_up(database, table)
    assert refused.value.code == "untrusted-object"
    assert "event trigger trap runs function app.on_ddl()" in refused.value.message
    assert attacker.ran() == []
    found = admin.execute("SELECT to_regnamespace('headrace_capture')").fetchone()
    assert found == (None,)
