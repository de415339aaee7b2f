"""What a DBA is given to run, and that the roles of Headrace need nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.api import Headrace
from headrace.capture.setup import set_up
from headrace.capture.wal.publication import add_to_publication
from headrace.capture.wal.slot import create, drop
from headrace.embedded import EmbeddedServer
from headrace.errors import UserError
from headrace.lifecycle.capture_requirements import NOTHING
from headrace.lifecycle.planned_table import TableRequest
from headrace.source.introspect import find_table
from tests.capture.wal.following import flushed, peeked
from tests.databases import extra_database
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]
SLOT = "headrace_of_a_runtime_role"
TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, n int);
CREATE TABLE "Log" (n int);
CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY);
"""


@pytest.fixture
def application(dsn: str) -> Iterator[Application]:
    """A session of the DBA's, who owns the tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture
def runtime(server: EmbeddedServer, application: Application, tmp_path: Path) -> Iterator[Headrace]:
    """A project whose role may read the tables, have a schema of its own, and nothing else."""
    name = application.info.dbname
    application.execute('CREATE ROLE "run time" LOGIN')
    application.execute(f'GRANT CREATE ON DATABASE {name} TO "run time"')
    application.execute('GRANT SELECT ON orders, "Log", scratch TO "run time"')
    with headrace.connect(server.dsn_of(name, "run time"), home=tmp_path) as opened:
        yield opened
    application.execute('DROP OWNED BY "run time" CASCADE; DROP ROLE "run time"')


def test_triggers_only_where_nobody_asks_for_more(
    runtime: Headrace, application: Application
) -> None:
    script = runtime.cdc_sql("orders", 'public."Log"', "orders")
    assert script.startswith("BEGIN;\n") and script.endswith("COMMIT;\n")
    assert script.count("CREATE SCHEMA") == 1
    assert script.count("SHARE ROW EXCLUSIVE MODE") == 2, "each table once"
    assert "PUBLICATION" not in script and "REPLICATION" not in script
    application.execute(script)
    assert runtime.cdc_sql("orders", 'public."Log"') == NOTHING
    database = runtime._engine.database
    with database.session() as connection:
        tables = [find_table(connection, "public", name) for name in ("orders", "Log")]
    assert not any(set_up(database, table) for table in tables), "all was there"


def test_the_log_with_the_least_rights(runtime: Headrace, application: Application) -> None:
    runtime.set("cdc_mode", "auto")
    database = runtime._engine.database
    with database.session() as connection:
        table = find_table(connection, "public", "orders")
    with pytest.raises(UserError) as refused:
        add_to_publication(database, table)
    assert refused.value.code == "capture-not-set-up"
    script = runtime.cdc_sql("orders", 'public."Log"', "scratch")
    remark, rest = script.split("\n", 1)[0], script.split("\n", 1)[1]
    assert remark.startswith("-- public.Log: it has no primary key")
    assert rest.startswith("-- public.scratch: public.scratch is an unlogged table")
    assert 'ALTER TABLE public."Log" REPLICA IDENTITY FULL;' in script
    assert script.count("CREATE PUBLICATION") == 1
    assert 'ADD TABLE "public"."scratch"' not in script, "its updates would fail"
    assert 'ALTER ROLE "run time" REPLICATION;' in script
    application.execute(script)
    assert runtime.cdc_sql("orders", 'public."Log"') == NOTHING
    assert not add_to_publication(database, table), "all was there"
    create(database, SLOT)
    try:
        application.execute("INSERT INTO orders VALUES (1, 2)")
        (transaction,) = peeked(database, SLOT, flushed(database))
        assert transaction.rows[table.oid] == {(1, 2): 1}
        with pytest.raises(psycopg.errors.InsufficientPrivilege), database.session() as connection:
            connection.execute("INSERT INTO public.orders VALUES (2, 2)")
    finally:
        drop(database, SLOT)


def test_all_sources_by_database(
    dsn: str, application: Application, server: EmbeddedServer, tmp_path: Path
) -> None:
    with (
        extra_database(server) as other,
        headrace.connect(dsn, home=tmp_path) as project,
        psycopg.connect(other, autocommit=True) as sql,
    ):
        assert project.cdc_sql() == NOTHING
        sql.execute(TABLES)
        project.attach("crm", other)
        put_tables(
            project,
            TableRequest.of("a", "SELECT n FROM orders", {"cdc_mode": "auto"}),
            TableRequest.of("b", 'SELECT n FROM crm.public."Log"', {}),
        )
        home, crm = project.cdc_sql().split("-- In database ")[1:]
        assert home.startswith("home:\nBEGIN;\n")
        assert 'ADD TABLE "public"."orders"' in home and "REPLICATION" not in home
        assert crm.startswith("crm:\nBEGIN;\n")
        assert 'ON "public"."Log"' in crm and "PUBLICATION" not in crm
        application.execute(home.split("\n", 1)[1])
        sql.execute(crm.split("\n", 1)[1])
        assert project.cdc_sql().count(NOTHING) == 2
        for wrong in ("nothing", "a.b.c", "a.b.c.d", '"x'):
            with pytest.raises(UserError):
                project.cdc_sql(wrong)


def test_no_name_ends_a_remark(runtime: Headrace, application: Application) -> None:
    """A DBA runs the script as a superuser, and the owner of a table chooses its name."""
    name = '"x\nDROP TABLE orders; --"'
    application.execute(f"CREATE UNLOGGED TABLE {name} (id int PRIMARY KEY)")
    application.execute(f'GRANT SELECT ON {name} TO "run time"')
    runtime.set("cdc_mode", "auto")
    script = runtime.cdc_sql(f"public.{name}")
    remarks = script.partition("BEGIN;\n")[0].splitlines()
    assert remarks and all(line.startswith("-- ") for line in remarks)
    application.execute(script)
    assert application.execute("SELECT to_regclass('orders')::text").fetchone() == ("orders",)
