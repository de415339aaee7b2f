"""Functions and triggers of capture that others replace are noticed by the next cut, and mended."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.capture.setup import set_up
from headrace.source.connection import Database
from tests.capture.follower import Follower

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]

FUNCTION = "headrace_capture.capture_{oid}()"
NOTE = "headrace_capture.note_recopy_reason(concerned oid, problem text)"
HEAD = f"CREATE OR REPLACE FUNCTION {FUNCTION} RETURNS trigger LANGUAGE plpgsql"
SAFE = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
NOTHING = "$$BEGIN RETURN NULL; END$$"
# The function again, with a part of its text replaced.
EDITED = (
    "DO $do$ BEGIN EXECUTE replace(pg_get_functiondef("
    "'headrace_capture.capture_{oid}()'::regprocedure), $${old}$$, $${new}$$); END $do$"
)

REPLACED = {
    "does nothing": f"{HEAD} {SAFE} AS {NOTHING}",
    "does nothing as its caller": f"{HEAD} AS {NOTHING}",
    "a line less": EDITED.replace("{old}", "problem := format").replace("{new}", "-- := "),
    "leaves deletes out": EDITED.replace("{old}", "TG_OP = 'DELETE'").replace("{new}", "true"),
    "another language": f"CREATE LANGUAGE another HANDLER plpgsql_call_handler;"
    f"{HEAD.replace('LANGUAGE plpgsql', 'LANGUAGE another')} {SAFE} AS {NOTHING}",
    "immutable": f"ALTER FUNCTION {FUNCTION} IMMUTABLE",
    "search path": f"ALTER FUNCTION {FUNCTION} SET search_path = public",
    "one more setting": f"ALTER FUNCTION {FUNCTION} SET default_transaction_read_only = on",
    "no settings": f"ALTER FUNCTION {FUNCTION} RESET ALL",
    "notes of failures": f"CREATE OR REPLACE FUNCTION {NOTE} RETURNS void LANGUAGE plpgsql"
    " SET search_path = pg_catalog, pg_temp AS $$BEGIN END$$",
    "settings of notes": "ALTER FUNCTION headrace_capture.note_recopy_reason(oid, text)"
    " SET default_transaction_read_only = on",
    "condition of a trigger": "CREATE OR REPLACE TRIGGER headrace_capture_insert AFTER INSERT ON t"
    " REFERENCING NEW TABLE AS headrace_new FOR EACH STATEMENT WHEN (false)"
    f" EXECUTE FUNCTION {FUNCTION}; ALTER TABLE t ENABLE ALWAYS TRIGGER headrace_capture_insert",
    "event of a trigger": "CREATE OR REPLACE TRIGGER headrace_capture_insert AFTER DELETE ON t"
    f" REFERENCING OLD TABLE AS headrace_old FOR EACH STATEMENT EXECUTE FUNCTION {FUNCTION};"
    " ALTER TABLE t ENABLE ALWAYS TRIGGER headrace_capture_insert",
}


def written(application: Application) -> None:
    """An insert, an update and a delete."""
    application.execute("INSERT INTO t VALUES (3, 'c'), (4, 'd')")
    application.execute("UPDATE t SET b = 'x' WHERE a = 3")
    application.execute("DELETE FROM t WHERE a = 4")


def functions(application: Application) -> list[tuple[Any, ...]]:
    return application.execute(
        "SELECT pg_get_functiondef(oid) FROM pg_proc"
        " WHERE pronamespace = 'headrace_capture'::regnamespace ORDER BY proname"
    ).fetchall()


@pytest.fixture
def follower(database: Database, application: Application) -> Follower:
    application.execute("CREATE TABLE t (a integer, b text)")
    application.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    made = Follower(database, "t")
    made.tick()
    return made


@pytest.mark.parametrize("name", REPLACED)
def test_what_is_replaced_is_noticed_and_mended(
    follower: Follower, application: Application, name: str
) -> None:
    installed = functions(application)
    application.execute(REPLACED[name].replace("{oid}", str(follower.oids["t"])))
    written(application)
    assert set(follower.tick().copied or ()) == {"t"}
    assert functions(application) == installed
    for _ in range(2):
        written(application)
        assert follower.tick().copied == {}
    assert follower.tick().skipped


def test_what_is_put_back_is_noticed(follower: Follower, application: Application) -> None:
    oid = follower.oids["t"]
    row = application.execute(
        f"SELECT pg_get_functiondef('{FUNCTION.format(oid=oid)}'::regprocedure)"
    ).fetchone()
    assert row is not None
    application.execute(REPLACED["does nothing"].format(oid=oid))
    written(application)
    application.execute(row[0])
    assert set(follower.tick().copied or ()) == {"t"}
    written(application)
    assert follower.tick().copied == {}


def test_a_new_limit_does_not_hide_it(
    database: Database, follower: Follower, application: Application
) -> None:
    """The function that a new limit makes is ours, and what was there before was not."""
    application.execute(REPLACED["does nothing"].format(oid=follower.oids["t"]))
    written(application)
    set_up(database, follower.source("t"), max_buffer_mb=8)
    follower.options = {"max_buffer_mb": 8}
    assert set(follower.tick().copied or ()) == {"t"}
    written(application)
    assert follower.tick().copied == {}


def test_a_version_that_records_otherwise(follower: Follower, application: Application) -> None:
    """Capture that another version has set up is set up again, not suspended."""
    application.execute(
        EDITED.format(oid=follower.oids["t"], old="problem text;", new="problem text; more text;")
    )
    application.execute("UPDATE headrace_capture.sources SET definition = 'of another version'")
    assert set(follower.tick().copied or ()) == {"t"}
    written(application)
    assert follower.tick().copied == {}


@pytest.mark.parametrize(
    "ddl",
    [
        'CREATE TABLE t (a integer, "ü$$$headrace$\\{" text[])',
        "CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE t (a mood[], b mood)",
        "CREATE TABLE t (a integer, b text) PARTITION BY LIST (a);"
        "CREATE TABLE t1 PARTITION OF t DEFAULT",
    ],
)
def test_what_is_set_up_is_what_is_expected(
    database: Database, application: Application, ddl: str
) -> None:
    application.execute(ddl)
    follower = Follower(database, "t")
    follower.tick()
    application.execute("INSERT INTO t VALUES (NULL, NULL)")
    assert follower.tick().copied == {}
    # As an editor of another system may have saved the script that a DBA runs.
    application.execute(
        "DO $do$ BEGIN EXECUTE replace(pg_get_functiondef("
        f"'headrace_capture.capture_{follower.oids['t']}()'::regprocedure),"
        " chr(10), chr(13) || chr(10)); END $do$"
    )
    application.execute("INSERT INTO t VALUES (NULL, NULL)")
    assert follower.tick().copied == {}
