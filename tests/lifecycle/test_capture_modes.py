"""Modes of capture that stream tables ask for: refused before anything is written, or kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.api import Headrace
from headrace.embedded import EmbeddedServer
from headrace.errors import UserError
from headrace.lifecycle.alter import Alteration, alter
from headrace.lifecycle.create import check_query, make
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.apply import apply_project, plan_project
from headrace.project.read import read_folder
from tests.databases import extra_database
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

TABLES = """
CREATE TABLE keyed (id int PRIMARY KEY, n int);
CREATE TABLE bare (id int, n int);
"""


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[Headrace]:
    """A project over tables with and without a key; its Spark never starts."""
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        headrace.connect(dsn, home=tmp_path / "home") as opened,
    ):
        sql.execute(TABLES)
        yield opened


def request(name: str, source: str, mode: str | None = None) -> TableRequest:
    return TableRequest.of(name, f"SELECT n FROM {source}", {"cdc_mode": mode})


def looked_at(project: Headrace, asked: TableRequest) -> None:
    """What is known of a stream table before anything is written."""
    check_query(project._engine, project._engine.catalog.state(), asked)


def refused(project: Headrace, *requests: TableRequest) -> UserError:
    with pytest.raises(UserError) as caught:
        make(project._engine, requests)
    assert caught.value.code == "invalid-option"
    assert not project._engine.catalog.state().sources, "nothing was written"
    return caught.value


def modes(project: Headrace) -> dict[str, Any]:
    tables = project._engine.catalog.state().stream_tables
    return {table.name: table.options.get("cdc_mode") for table in tables}


def test_wal_needs_a_replica_identity(project: Headrace, dsn: str) -> None:
    looked_at(project, request("t", "keyed", "wal"))
    error = refused(project, request("t", "bare", "wal"))
    assert error.message == (
        "public.bare cannot be captured with cdc_mode wal:"
        " it has no primary key, and its replica identity is not FULL"
    )
    assert "ALTER TABLE public.bare REPLICA IDENTITY FULL;" in (error.hint or "")
    for mode in (None, "trigger", "auto"):
        looked_at(project, request("t", "bare", mode))
    project.set("auto_replica_identity", True)
    looked_at(project, request("t", "bare", "wal"))
    with psycopg.connect(dsn, autocommit=True) as sql:
        found = sql.execute("SELECT relreplident FROM pg_class WHERE relname = 'bare'").fetchone()
        assert found == ("d",), "looking changes nothing"
        project.set("auto_replica_identity", False)
        sql.execute("ALTER TABLE bare REPLICA IDENTITY FULL")
    looked_at(project, request("t", "bare", "wal"))


def test_the_setting_is_a_request_for_all(project: Headrace) -> None:
    project.set("cdc_mode", "wal")
    assert "public.bare cannot" in refused(project, request("t", "bare")).message
    looked_at(project, request("t", "bare", "auto"))
    looked_at(project, request("t", "keyed"))


def test_wal_needs_a_role_that_may(server: EmbeddedServer, dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute(TABLES)
        sql.execute("CREATE ROLE no_replica LOGIN; GRANT ALL ON SCHEMA public TO no_replica")
        sql.execute(f"GRANT ALL ON DATABASE {sql.info.dbname} TO no_replica")
        sql.execute("GRANT SELECT ON keyed TO no_replica")
        try:
            address = server.dsn_of(sql.info.dbname, "no_replica")
            with headrace.connect(address, home=tmp_path) as project:
                looked_at(project, request("t", "keyed", "auto"))
                error = refused(project, request("t", "keyed", "wal"))
                assert "role no_replica may not use replication slots" in error.message
                assert 'ALTER ROLE "no_replica" REPLICATION;' in (error.hint or "")
        finally:
            sql.execute("DROP OWNED BY no_replica CASCADE; DROP ROLE no_replica")


def test_a_table_of_an_attached_database_is_looked_at_there(
    project: Headrace, server: EmbeddedServer
) -> None:
    with extra_database(server) as other:
        with psycopg.connect(other, autocommit=True) as sql:
            sql.execute(TABLES)
        project.attach("crm", other)
        looked_at(project, request("t", "crm.public.keyed", "wal"))
        error = refused(project, request("t", "crm.public.bare", "wal"))
        assert error.message.startswith("crm.public.bare cannot")
        project.detach("crm")


def test_tables_that_ask_for_different_modes(project: Headrace) -> None:
    error = refused(project, request("a", "keyed", "wal"), request("b", "keyed", "trigger"))
    assert "public.a and public.b ask for different modes of public.keyed" in error.message
    put_tables(project, request("a", "keyed", "wal"), request("b", "keyed"))
    with pytest.raises(UserError, match="ask for different modes"):
        looked_at(project, request("c", "keyed", "trigger"))
    with pytest.raises(UserError, match="ask for different modes"):
        project.alter_stream_table("b", cdc_mode="auto")
    assert modes(project) == {"a": "wal", "b": None}
    project.alter_stream_table("a", cdc_mode=None)
    project.alter_stream_table("b", cdc_mode="auto")
    assert modes(project) == {"a": None, "b": "auto"}


def test_alter_is_refused_like_create(project: Headrace) -> None:
    put_tables(project, request("a", "bare"), request("b", "keyed"))
    with pytest.raises(UserError, match="bare cannot be captured"):
        project.alter_stream_table("a", cdc_mode="wal")
    with pytest.raises(UserError, match="bare cannot be captured"):
        project.create_or_replace_stream_table("a", "SELECT n FROM bare", cdc_mode="wal")
    assert modes(project) == {"a": None, "b": None}
    project.alter_stream_table("b", cdc_mode="wal")
    assert modes(project) == {"a": None, "b": "wal"}


def test_what_has_become_impossible_keeps_nobody_from_altering(project: Headrace, dsn: str) -> None:
    put_tables(project, request("a", "keyed", "wal"))
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("ALTER TABLE keyed REPLICA IDENTITY NOTHING")
    project.alter_stream_table("a", tier="warm")
    looked_at(project, request("b", "keyed", "wal"))
    engine = project._engine
    alter(engine, "public", "a", Alteration.of({"cdc_mode": "auto"}))
    with pytest.raises(UserError, match="its replica identity is NOTHING"):
        project.alter_stream_table("a", cdc_mode="wal")


def test_tables_change_their_mode_together(project: Headrace, tmp_path: Path) -> None:
    put_tables(project, request("a", "keyed", "trigger"), request("b", "keyed", "trigger"))
    both = [request(name, "keyed", "wal") for name in ("a", "b")]
    make(project._engine, both, frozenset({("public", "a"), ("public", "b")}))
    assert modes(project) == {"a": "wal", "b": "wal"}
    folder = tmp_path / "folder"
    folder.mkdir()
    statement = "CREATE STREAM TABLE {} WITH (cdc_mode = 'auto') AS SELECT n FROM keyed;\n"
    (folder / "all.sql").write_text("".join(map(statement.format, "ab")))
    wanted = read_folder(folder, "public")
    assert len(plan_project(project._engine, str(folder), wanted, prune=False).changes) == 2
    apply_project(project._engine, str(folder), wanted, prune=False)
    assert modes(project) == {"a": "auto", "b": "auto"}


def test_tables_that_differ_in_append_only(project: Headrace, tmp_path: Path) -> None:
    def asked(name: str, said: bool | None) -> TableRequest:
        return TableRequest.of(name, "SELECT n FROM keyed", {"append_only": said})

    error = refused(project, asked("a", True), asked("b", False))
    assert "public.a and public.b differ in append_only of public.keyed" in error.message
    put_tables(project, asked("a", True), asked("b", None))
    with pytest.raises(UserError, match=r"public\.a and public\.b differ in append_only"):
        project.alter_stream_table("b", append_only=False)
    folder = tmp_path / "folder"
    folder.mkdir()
    statement = "CREATE STREAM TABLE {} WITH (append_only = false) AS SELECT n FROM keyed;\n"
    (folder / "all.sql").write_text("".join(map(statement.format, "ab")))
    apply_project(project._engine, str(folder), read_folder(folder, "public"), prune=False)
    tables = project._engine.catalog.state().stream_tables
    assert [table.options for table in tables] == [{"append_only": False}] * 2
