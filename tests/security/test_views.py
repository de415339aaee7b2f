"""Views of others, which would have us show what only we may read; and rights that are lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import headrace
from headrace.capture.busy import SourcesUnusable
from headrace.capture.cut import open_cut
from headrace.catalog.records import ViewRecord
from headrace.embedded import EmbeddedServer
from headrace.errors import UserError
from headrace.lifecycle.drift import changed_views
from headrace.lifecycle.planned_table import FIRST, PlannedTable, TableRequest
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import TableSpec
from headrace.source import views
from headrace.source.connection import Database
from headrace.source.views import find_views, forbidden_views, look_at_views
from tests.capture.follower import Follower
from tests.catalog import examples
from tests.lifecycle.made import put_tables
from tests.security.conftest import Attacker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.postgres

Admin = psycopg.Connection[Any]
SECRET = """
CREATE TABLE public.salaries (id integer PRIMARY KEY, name text, amount integer);
INSERT INTO public.salaries VALUES (1, 'anna', 100), (2, 'ben', 200);
"""
OWN = """
CREATE TABLE app.staff (id integer PRIMARY KEY, name text, amount integer);
INSERT INTO app.staff VALUES (7, 'mallory', 1);
CREATE VIEW app.shown AS SELECT id, name, amount FROM app.staff;
"""
LATER = "CREATE OR REPLACE VIEW app.shown AS SELECT id, name, amount FROM public.salaries"


@pytest.fixture
def tables(admin: Admin, attacker: Attacker) -> Attacker:
    """A table that the attacker may not read, and a view of its own."""
    admin.execute(SECRET)
    attacker.execute(OWN)
    return attacker


@pytest.fixture
def project(dsn: str, tables: Attacker, tmp_path: Path) -> Iterator[headrace.Headrace]:
    """A project whose Spark never starts."""
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        yield opened


def planned(project: headrace.Headrace, query: str) -> PlannedTable:
    engine = project._engine
    (making,) = plan(
        engine, engine.catalog.state(), [TableSpec(FIRST, TableRequest("s", query))]
    ).planned_tables
    return making


def refusal(project: headrace.Headrace, query: str) -> UserError:
    with pytest.raises(UserError) as refused:
        planned(project, query)
    return refused.value


QUERY = "SELECT id, name, amount FROM app.shown"


def test_a_view_over_what_its_owner_may_not_read(
    project: headrace.Headrace, tables: Attacker, admin: Admin
) -> None:
    planned(project, QUERY)
    tables.execute(LATER)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tables.execute(QUERY)
    error = refusal(project, QUERY)
    assert error.code == "permission-denied"
    assert error.message == (
        "role attacker may not read public.salaries, which view app.shown reads in its name"
    )
    admin.execute("GRANT SELECT (id, name) ON public.salaries TO attacker")
    assert refusal(project, QUERY).code == "permission-denied"
    admin.execute("GRANT SELECT (amount) ON public.salaries TO attacker")
    planned(project, QUERY)


def test_a_view_over_another_view(
    project: headrace.Headrace, tables: Attacker, admin: Admin
) -> None:
    """Each owner is asked for what its own view reads."""
    admin.execute(
        "CREATE VIEW public.trusted AS SELECT id, name, amount FROM app.shown;"
        "GRANT SELECT ON public.trusted TO attacker"
    )
    query = "SELECT id FROM public.trusted"
    planned(project, query)
    tables.execute(LATER)
    assert "view app.shown" in refusal(project, query).message
    admin.execute(
        "CREATE VIEW public.names AS SELECT id, name FROM public.salaries;"
        "GRANT SELECT ON public.names TO attacker"
    )
    tables.execute("CREATE VIEW app.over AS SELECT id, name FROM public.names")
    planned(project, "SELECT id FROM app.over")


def test_a_view_that_reads_no_column(project: headrace.Headrace, tables: Attacker) -> None:
    tables.execute("CREATE VIEW app.many AS SELECT count(*) AS n FROM public.salaries")
    assert refusal(project, "SELECT n FROM app.many").code == "permission-denied"


WHOLE_ROWS = (
    "SELECT s.id, s::text AS shown FROM public.salaries s",
    "SELECT s.id, to_jsonb(s)::text AS shown FROM public.salaries s",
    "SELECT s.id, (s).amount AS shown FROM public.salaries s",
    "SELECT s.id, count(s) AS shown FROM public.salaries s GROUP BY s.id",
    "SELECT s.id, s IS NULL AS shown FROM public.salaries s",
    "SELECT s.id, o.amount AS shown FROM public.salaries s JOIN public.salaries o USING (amount)",
)


@pytest.mark.parametrize("text", WHOLE_ROWS)
def test_a_view_that_reads_whole_rows(
    project: headrace.Headrace, tables: Attacker, admin: Admin, text: str
) -> None:
    """The right to read one column does not do, although the view depends on no other."""
    admin.execute("GRANT SELECT (id) ON public.salaries TO attacker")
    tables.execute(f"CREATE VIEW app.rows AS {text}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tables.execute("TABLE app.rows")
    with Database(project.dsn) as database, database.session() as connection:
        (error,) = forbidden_views(connection, [("app", "rows")]).values()
    assert error.code == "permission-denied"


def test_row_level_security_of_a_view_s_owner(
    project: headrace.Headrace, tables: Attacker, admin: Admin
) -> None:
    tables.execute(LATER)
    admin.execute("GRANT SELECT ON public.salaries TO attacker")
    planned(project, QUERY)
    admin.execute("ALTER TABLE public.salaries ENABLE ROW LEVEL SECURITY")
    assert tables.execute(QUERY) == []
    assert 'row-level security policy for table "salaries"' in refusal(project, QUERY).message
    with Database(project.dsn) as database, database.session() as connection:
        (error,) = forbidden_views(connection, [("app", "shown")]).values()
        assert error.code == "row-security"
        assert error.message == (
            "row level security would hide rows of public.salaries from role attacker, as whom view"
            " app.shown reads it"
        )
        admin.execute("ALTER ROLE attacker BYPASSRLS")
        assert forbidden_views(connection, [("app", "shown")]) == {}
    planned(project, QUERY)


def test_a_view_with_the_rights_of_whoever_reads_it(
    project: headrace.Headrace, tables: Attacker, admin: Admin
) -> None:
    """It needs those of the role that created the stream table, which is recorded."""
    tables.execute(LATER)
    tables.execute("ALTER VIEW app.shown SET (security_invoker = on)")
    making = planned(project, QUERY)
    assert making.table.creator == admin.info.user
    with Database(project.dsn) as database, database.session() as connection:
        assert changed_views(connection, making.table) == {}
        admin.execute("CREATE ROLE creator; GRANT SELECT ON app.shown TO creator")
        try:
            stranger = replace(making.table, creator="creator")
            assert changed_views(connection, stranger) == {
                stranger.relation: "view app.shown lost a right"
            }
            admin.execute("GRANT SELECT ON public.salaries TO creator")
            assert changed_views(connection, stranger) == {}
        finally:
            admin.execute("DROP OWNED BY creator; DROP ROLE creator")
        assert set(changed_views(connection, stranger)) == {stranger.relation}, "it is gone"


def test_a_right_that_is_lost_later(
    project: headrace.Headrace, tables: Attacker, admin: Admin
) -> None:
    admin.execute("GRANT SELECT ON public.salaries TO attacker")
    tables.execute(LATER)
    put_tables(project, TableRequest("s", QUERY))
    (table,) = project._engine.catalog.state().stream_tables
    with Database(project.dsn) as database, database.session() as connection:
        assert changed_views(connection, table) == {}
        admin.execute("REVOKE SELECT ON public.salaries FROM attacker")
        assert changed_views(connection, table) == {table.relation: "view app.shown lost a right"}


@pytest.mark.parametrize(
    ("lost", "given"),
    [
        ("REVOKE SELECT ON app.shown FROM creator", "GRANT SELECT ON app.shown TO creator"),
        ("REVOKE USAGE ON SCHEMA app FROM PUBLIC", "GRANT USAGE ON SCHEMA app TO PUBLIC"),
    ],
)
def test_the_right_to_read_the_view_itself_is_lost(
    project: headrace.Headrace, tables: Attacker, admin: Admin, lost: str, given: str
) -> None:
    """A view that only another view reads needs no right of ours."""
    tables.execute("CREATE VIEW app.inner AS SELECT id, name, amount FROM app.staff")
    tables.execute("CREATE OR REPLACE VIEW app.shown AS SELECT id, name, amount FROM app.inner")
    table = replace(planned(project, QUERY).table, creator="creator")
    assert {view.name for view in table.views} == {"shown", "inner"}
    suspended = {table.relation: "view app.shown lost a right"}
    admin.execute("CREATE ROLE creator")
    try:
        with Database(project.dsn) as database, database.session() as connection:
            assert changed_views(connection, table) == suspended, "no right yet"
            tables.execute("GRANT SELECT ON app.shown TO creator")
            assert changed_views(connection, table) == {}
            tables.execute(lost)
            assert changed_views(connection, table) == suspended
            tables.execute(given)
            assert changed_views(connection, table) == {}
    finally:
        admin.execute("DROP OWNED BY creator; DROP ROLE creator")


@pytest.mark.spark
def test_a_view_is_changed_after_the_stream_table_was_made(
    dsn: str, tables: Attacker, admin: Admin, tmp_path: Path, spark: SparkSession
) -> None:
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as project:
        project.create_stream_table("shown", QUERY)
        admin.execute("GRANT SELECT ON public.shown TO attacker")
        tables.execute(LATER)
        with pytest.raises(UserError) as refused:
            project.refresh("shown")
        assert refused.value.code == "table-suspended"
        (status,) = project.status()
        assert status.status == "SUSPENDED"
        assert "role attacker may not read public.salaries" in (status.reason or "")
        assert tables.execute("TABLE public.shown") == [(7, "mallory", 1)]


@pytest.fixture
def reader(server: EmbeddedServer, admin: Admin, tables: Attacker) -> Iterator[str]:
    """The address of a runtime role that may read two tables."""
    admin.execute("CREATE ROLE keeper LOGIN")
    admin.execute(f'GRANT CREATE ON DATABASE "{admin.info.dbname}" TO keeper')
    admin.execute("GRANT CREATE ON SCHEMA public TO keeper")
    admin.execute("GRANT SELECT ON public.salaries, app.staff TO keeper")
    yield server.dsn_of(admin.info.dbname, "keeper")
    admin.execute("DROP OWNED BY keeper CASCADE; DROP ROLE keeper")


# What an owner may do to a source that is captured, with the error.
LOSSES = {
    "REVOKE SELECT ON app.staff FROM keeper": "permission-denied",
    "REVOKE USAGE ON SCHEMA app FROM PUBLIC": "permission-denied",
    "ALTER TABLE app.staff ENABLE ROW LEVEL SECURITY": "row-security",
    "CREATE FUNCTION app.trap(integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1';"
    "CREATE INDEX ON app.staff (app.trap(id))": "untrusted-object",
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_cut_finds_what_may_no_longer_be_read(
    reader: str, dsn: str, tables: Attacker, loss: str
) -> None:
    with Database(reader, setup_dsn=dsn) as database:
        follower = Follower(database, "staff", schema="app")
        follower.tick()
        tables.execute(loss)
        source = follower.source("staff")
        with open_cut(database, [source]) as cut:
            codes = {oid: error.code for oid, error in cut.forbidden.items()}
            assert (codes, cut.recopy_reasons) == ({source.oid: LOSSES[loss]}, {})
        with (
            pytest.raises(SourcesUnusable) as refused,
            open_cut(database, [source], lock=[source.oid]),
        ):
            pass
        assert refused.value.why[source.oid].code == LOSSES[loss]


@pytest.mark.spark
def test_a_source_that_may_no_longer_be_read_stops_its_readers(
    reader: str, dsn: str, tables: Attacker, admin: Admin, tmp_path: Path, spark: SparkSession
) -> None:
    """And no others; they go on once the right is back."""
    with headrace.connect(dsn=reader, setup_dsn=dsn, home=tmp_path, spark=spark) as project:
        project.create_stream_table("a", "SELECT id, name FROM app.staff")
        project.create_stream_table("b", "SELECT id, name FROM public.salaries")
        tables.execute("ALTER TABLE app.staff ENABLE ROW LEVEL SECURITY")
        tables.execute("INSERT INTO app.staff VALUES (8, 'x', 1)")
        admin.execute("INSERT INTO public.salaries VALUES (3, 'carl', 300)")
        project.refresh("b")
        reasons = {one.name: one.reason for one in project.status()}
        assert "row level security would hide rows of app.staff" in (reasons["public.a"] or "")
        assert reasons["public.b"] is None
        assert admin.execute("SELECT count(*) FROM a").fetchone() == (1,)
        assert admin.execute("SELECT count(*) FROM b").fetchone() == (3,)
        tables.execute("ALTER TABLE app.staff DISABLE ROW LEVEL SECURITY")
        project.resume("a")
        project.refresh("a")
        assert admin.execute("SELECT count(*) FROM a").fetchone() == (2,)


def test_a_lock_hides_no_lost_right(dsn: str, tables: Attacker, admin: Admin) -> None:
    """Reading the text of a view waits for locks on what the view reads; rights do not."""
    admin.execute("GRANT SELECT ON public.salaries TO attacker")
    tables.execute(LATER)
    tables.execute("CREATE VIEW app.locked AS SELECT id FROM app.staff")
    with Database(dsn) as database, database.session() as connection:
        names = [("app", "shown"), ("app", "locked")]
        views = tuple(
            ViewRecord(*name, view.text, view.columns)
            for name, view in find_views(connection, names).items()
        )
        table = replace(examples.TABLE, views=views, creator=database.roles[0])
        assert changed_views(connection, table) == {}
        admin.execute("REVOKE SELECT ON public.salaries FROM attacker")
        tables.execute("BEGIN; LOCK TABLE app.staff IN ACCESS EXCLUSIVE MODE")
        connection.execute("SET lock_timeout = '50ms'")
        assert changed_views(connection, table) == {table.relation: "view app.shown lost a right"}
        tables.execute("ROLLBACK")


@pytest.mark.parametrize(
    "locking",
    ["LOCK TABLE app.staff IN ACCESS EXCLUSIVE MODE", "ALTER VIEW app.locked OWNER TO attacker"],
)
def test_a_locked_view_is_left_for_a_later_look(
    dsn: str, tables: Attacker, admin: Admin, locking: str
) -> None:
    """A look that does not wait sees all other views."""
    admin.execute("GRANT SELECT ON public.salaries TO attacker")
    tables.execute(LATER)
    tables.execute("CREATE VIEW app.locked AS SELECT id FROM app.staff")
    with Database(dsn) as database, database.session() as connection:
        readers = [
            replace(
                examples.TABLE,
                relation=name,
                views=(ViewRecord(*place, view.text, view.columns),),
                creator=database.roles[0],
            )
            for name in ("shown", "locked")
            for place, view in find_views(connection, [("app", name)]).items()
        ]
        connection.execute("SET lock_timeout = 0; SET statement_timeout = '5s'")
        assert changed_views(connection, *readers, wait=False) == {}
        tables.execute(
            "CREATE OR REPLACE VIEW app.shown AS SELECT 1 AS id, name, amount FROM public.salaries"
        )
        tables.execute("CREATE OR REPLACE VIEW app.locked AS SELECT 1 AS id FROM app.staff")
        tables.execute(f"BEGIN; {locking}")
        assert changed_views(connection, *readers, wait=False) == {
            "shown": "view app.shown was changed"
        }
        tables.execute("ROLLBACK")
        assert set(changed_views(connection, *readers, wait=False)) == {"shown", "locked"}


def test_a_lock_that_is_taken_during_a_look(
    dsn: str, tables: Attacker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "LOOK", views.VIEWS)
    tables.execute("CREATE VIEW app.other AS SELECT 1 AS one")
    names = [("app", "shown"), ("app", "other"), ("app", "none")]
    with Database(dsn) as database, database.session() as connection:
        found = find_views(connection, names)
        tables.execute("BEGIN; LOCK TABLE app.staff IN ACCESS EXCLUSIVE MODE")
        assert look_at_views(connection, names) == {**found, ("app", "shown"): None}
        tables.execute("ROLLBACK")
        assert look_at_views(connection, names) == found
        assert connection.execute("SHOW lock_timeout").fetchone() == ("5s",)
