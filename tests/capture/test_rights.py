"""Who may set capture up, who only uses it, and what a DBA is given to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.capture.setup import set_up, tear_down
from headrace.embedded import EmbeddedServer
from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.introspect import find_table
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]
TABLES = (
    "CREATE TABLE t (a integer, b text)",
    "CREATE TABLE p (a integer) PARTITION BY RANGE (a);"
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100)",
)


@pytest.fixture
def runtime(server: EmbeddedServer, dsn: str, application: Application) -> Iterator[str]:
    """The connection string of a role that may only read tables t and p."""
    for statement in TABLES:
        application.execute(statement)
    application.execute('CREATE ROLE "run time" LOGIN')
    application.execute('GRANT SELECT ON t, p TO "run time"')
    yield server.dsn_of(application.info.dbname, "run time")
    application.execute('DROP OWNED BY "run time"; DROP ROLE "run time"')


def refusal(database: Database, name: str) -> UserError:
    with database.session() as connection:
        table = find_table(connection, None, name)
    with pytest.raises(UserError) as refused:
        set_up(database, table)
    assert refused.value.code == "capture-not-set-up"
    return refused.value


def test_the_dba_runs_what_the_hint_says(runtime: str, application: Application) -> None:
    with Database(runtime) as database:
        for name in ("t", "p"):
            hint = refusal(database, name).hint
            assert hint is not None
            script = hint.split("\n", 1)[1]
            found = application.execute("SELECT to_regnamespace('headrace_capture')").fetchone()
            assert (found == (None,)) is (name == "t"), "nothing half-made is left"
            application.execute(script)
        follower = Follower(database, "t", "p")
        follower.tick()
        application.execute("INSERT INTO t VALUES (1, 'x')")
        application.execute("INSERT INTO p VALUES (1)")
        assert follower.tick().copied == {}
        application.execute("TRUNCATE t")
        assert set(follower.tick().copied or ()) == {"t"}
        application.execute("CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)")
        application.execute("INSERT INTO p VALUES (150)")
        assert set(follower.tick().copied or ()) == {"p"}
        application.execute("INSERT INTO p VALUES (151)")
        assert follower.tick().copied == {}
        with pytest.raises(UserError) as refused:
            tear_down(database, follower.oids["t"])
        assert refused.value.code == "capture-not-set-up"
        assert "DROP TRIGGER" in (refused.value.hint or "")


def test_buffers_that_may_not_be_converted_still_record(
    runtime: str, application: Application
) -> None:
    """Whoever changes `unlogged_buffers` may lack the right to convert what a DBA has set up."""
    with Database(runtime) as database:
        hint = refusal(database, "t").hint
        assert hint is not None
        application.execute(hint.split("\n", 1)[1])
        Follower(database, "t").tick()
        application.execute("INSERT INTO t VALUES (1, 'x')")
        follower = Follower(database, "t", unlogged=True)
        follower.tick()
        application.execute("TRUNCATE t")
        application.execute("INSERT INTO t VALUES (2, 'y')")
        assert set(follower.tick().copied or ()) == {"t"}
        application.execute("INSERT INTO t VALUES (3, 'z')")
        assert follower.tick().copied == {}
        assert follower.bag("t") == {(2, "y"): 1, (3, "z"): 1}


def test_a_setup_role_of_its_own(runtime: str, dsn: str, application: Application) -> None:
    with Database(runtime, setup_dsn=dsn) as database:
        follower = Follower(database, "t", "p")
        follower.tick()
        application.execute("INSERT INTO t VALUES (1, 'x')")
        assert follower.tick().copied == {}
        for oid in follower.oids.values():
            tear_down(database, oid)
        found = application.execute("SELECT to_regnamespace('headrace_capture')").fetchone()
        assert found == (None,)
        assert application.execute("SELECT count(*) FROM pg_trigger").fetchone() == (0,)


def test_the_application_needs_no_rights_of_ours(
    runtime: str, database: Database, application: Application
) -> None:
    follower = Follower(database, "t")
    follower.tick()
    application.execute('GRANT INSERT, UPDATE, DELETE ON t TO "run time"')
    with psycopg.connect(runtime, autocommit=True) as session:
        session.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        session.execute("UPDATE t SET b = 'z'")
        session.execute("DELETE FROM t WHERE a = 1")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("SELECT * FROM headrace_capture.recopy_reasons")
    assert follower.tick().copied == {}
    assert follower.bag("t") == {(2, "z"): 1}


def test_a_name_that_shadows_ours(
    runtime: str, database: Database, application: Application
) -> None:
    """Functions run with a fixed search path, whatever the session's is."""
    follower = Follower(database, "t")
    follower.tick()
    application.execute('GRANT INSERT ON t TO "run time"')
    with psycopg.connect(runtime, autocommit=True) as session:
        session.execute("CREATE TEMPORARY TABLE headrace_new (a integer, b text)")
        session.execute(
            "CREATE FUNCTION pg_temp.pg_current_xact_id() RETURNS xid8 LANGUAGE sql AS"
            " $$SELECT '1'::xid8$$"
        )
        session.execute("SET search_path = pg_temp, pg_catalog, public")
        session.execute("INSERT INTO public.t VALUES (1, 'x')")
    assert follower.tick().copied == {}
    assert follower.bag("t") == {(1, "x"): 1}
