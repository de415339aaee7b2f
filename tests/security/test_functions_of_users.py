"""Functions of others that PostgreSQL would run for us: in indexes, on DDL, under our names."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.embedded import EmbeddedServer
from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.describe import describe, user_objects
from headrace.source.introspect import find_table
from tests.capture.follower import Follower
from tests.security.conftest import Attacker

pytestmark = pytest.mark.postgres

Admin = psycopg.Connection[Any]
# Declared immutable, so that it is computed when a query is planned; it may call what is not.
CONSTANT = """
CREATE TABLE app.things (id integer, name text);
CREATE FUNCTION app.constant(text) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM app.note($1);
    RETURN 1;
END
$$;
CREATE FUNCTION app.equal(integer, integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM app.note('operator');
    RETURN true;
END
$$;
CREATE OPERATOR app.=== (FUNCTION = app.equal, LEFTARG = integer, RIGHTARG = integer);
"""
TRAPS = {
    "index": "CREATE INDEX ON app.things ((id + app.constant('index')))",
    "predicate": "CREATE INDEX ON app.things (id) WHERE id > app.constant('predicate')",
    "operator": "CREATE INDEX ON app.things ((id > 1 AND 1 OPERATOR(app.===) 1))",
    "statistics": "CREATE STATISTICS app.s ON (id + app.constant('statistics')), name"
    " FROM app.things",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_planning_would_run(attacker: Attacker, admin: Admin, dsn: str, trap: str) -> None:
    attacker.execute(CONSTANT)
    attacker.execute(TRAPS[trap])
    attacker.ran()
    admin.execute("SELECT id FROM app.things")
    assert (admin.info.user, trap) in {(who, how) for who, _, how in attacker.ran()}, "it works"
    with (
        Database(dsn) as database,
        database.session() as connection,
        pytest.raises(UserError) as refused,
    ):
        find_table(connection, "app", "things")
    assert refused.value.code == "untrusted-object"
    name = "app.equal(integer,integer)" if trap == "operator" else "app.constant(text)"
    assert name in refused.value.message
    assert f"ALTER FUNCTION {name} OWNER TO" in (refused.value.hint or "")
    assert attacker.ran() == []
    admin.execute(f"ALTER FUNCTION {name} OWNER TO {admin.info.user}")
    with Database(dsn) as database, database.session() as connection:
        assert find_table(connection, "app", "things").name == "things", "the hint helps"


def test_a_key_of_partitions(attacker: Attacker, dsn: str) -> None:
    attacker.execute(CONSTANT)
    attacker.execute(
        "CREATE TABLE app.parts (id integer) PARTITION BY RANGE ((id + app.constant('key')))"
    )
    with (
        Database(dsn) as database,
        database.session() as connection,
        pytest.raises(UserError) as refused,
    ):
        find_table(connection, "app", "parts")
    assert refused.value.code == "untrusted-object"


def test_constraints_are_not_looked_at(attacker: Attacker, admin: Admin, dsn: str) -> None:
    attacker.execute(CONSTANT)
    attacker.execute("ALTER TABLE app.things ADD CHECK (id > app.constant('constraint'))")
    attacker.execute("INSERT INTO app.things VALUES (2, 'x')")
    attacker.ran()
    admin.execute("SET constraint_exclusion = on")
    admin.execute("SELECT id FROM app.things WHERE id > 1")
    assert attacker.ran_as_others(), "the trojan works"
    admin.execute(f'ALTER DATABASE "{admin.info.dbname}" SET constraint_exclusion = on')
    with Database(dsn) as database:
        follower = Follower(database, "things", schema="app")
        follower.tick()
        assert follower.bag("things") == {(2, "x"): 1}
    assert attacker.ran_as_others() == []


def test_functions_in_public(attacker: Attacker, admin: Admin, dsn: str) -> None:
    """Where public comes first, functions that somebody made there shadow built-in ones."""
    admin.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    for name, result in (
        ("pg_current_xact_id", "xid8"),
        ("pg_current_snapshot", "pg_snapshot"),
        ("pg_export_snapshot", "text"),
        ("clock_timestamp", "timestamptz"),
        ("current_schemas", "name[]"),
    ):
        argument = "boolean" if name == "current_schemas" else ""
        attacker.execute(
            f"CREATE FUNCTION public.{name}({argument}) RETURNS {result} LANGUAGE sql AS"
            f" $$SELECT NULL::{result} FROM (SELECT app.note('{name}')) AS n$$"
        )
    attacker.execute(
        "CREATE FUNCTION public.plus(integer, bigint) RETURNS bigint LANGUAGE sql AS"
        " $$SELECT length(app.note('plus'))::bigint$$;"
        "CREATE OPERATOR public.+ (FUNCTION = public.plus, LEFTARG = integer, RIGHTARG = bigint);"
        "CREATE TABLE app.things (id integer, name text)"
    )
    admin.execute(f'ALTER DATABASE "{admin.info.dbname}" SET search_path = public, pg_catalog')
    with psycopg.connect(dsn, autocommit=True) as tried:
        tried.execute("SELECT clock_timestamp(), 1::integer + 1::bigint")
    assert {how for _, _, how in attacker.ran_as_others()} == {"clock_timestamp", "plus"}
    with Database(dsn) as database:
        assert database.search_path == ("public", "pg_catalog")
        follower = Follower(database, "things", schema="app")
        follower.tick()
        attacker.execute("SET search_path = public, pg_catalog")
        attacker.execute("INSERT INTO app.things VALUES (1, 'x')")
        assert follower.tick().copied == {}
        query = "SELECT id + 1::bigint AS one FROM app.things"
        with database.session() as connection:
            describe(connection, query, ["public"])
            (found,) = user_objects(connection, query, ["public", "pg_catalog"])[:1]
        assert found.kind == "operator"
    assert attacker.ran() == []


def test_event_triggers_are_a_matter_of_superusers(attacker: Attacker) -> None:
    attacker.execute(
        "CREATE FUNCTION app.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM app.note('event trigger'); END$$"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacker.execute(
            "CREATE EVENT TRIGGER trap ON ddl_command_end EXECUTE FUNCTION app.on_ddl()"
        )


def test_a_role_that_others_own_functions_of(
    server: EmbeddedServer, attacker: Attacker, admin: Admin
) -> None:
    """A function of ours, or of who may become us, is trusted."""
    attacker.execute(CONSTANT)
    attacker.execute(TRAPS["index"])
    admin.execute("CREATE ROLE reader LOGIN")
    try:
        attacker.execute("GRANT SELECT ON app.things TO reader")
        admin.execute("GRANT reader TO attacker")
        address = server.dsn_of(admin.info.dbname, "reader")
        with Database(address) as database, database.session() as connection:
            assert find_table(connection, "app", "things").name == "things"
    finally:
        admin.execute("DROP OWNED BY reader; DROP ROLE reader")
