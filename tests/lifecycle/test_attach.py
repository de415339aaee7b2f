"""Attaching databases: what may be attached, under which alias, and what queries then mean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.api import Headrace
from headrace.errors import HeadraceError, UserError
from tests.databases import extra_database

pytestmark = pytest.mark.postgres

SHOP = "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount numeric(10,2))"
CRM = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE customer (id int PRIMARY KEY, name text, mood mood, place point);
CREATE SCHEMA "Odd Place";
CREATE TABLE "Odd Place"."Öl" (id int, grade numeric);
CREATE VIEW everybody AS SELECT * FROM customer;
"""


@pytest.fixture
def other(server: Any) -> Iterator[str]:
    """A second database, of a customer registry."""
    with extra_database(server) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(CRM)
        yield dsn


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[Headrace]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SHOP)
    with headrace.connect(dsn, home=tmp_path) as opened:
        yield opened


def refused(code: str, call: Any, *arguments: Any, **named: Any) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        call(*arguments, **named)
    assert caught.value.code == code, caught.value
    return caught.value


def reads(project: Headrace, query: str) -> set[str]:
    """The relations that a query reads, by their names."""
    explained = project.explain_strata({"t": query})
    return {one.read for one in explained.edges if one.reader == "public.t"}


def test_a_database_is_attached_listed_and_detached(project: Headrace, other: str) -> None:
    project.attach("crm", other, share=3)
    home, attached = project.databases()
    assert (home.alias, home.address, home.sources) == ("home", None, 0)
    assert (attached.alias, attached.address, attached.share) == ("crm", other, 3)
    project.attach("crm", other)
    assert [one.share for one in project.databases()] == [1, 1]
    project.detach("crm")
    assert [one.alias for one in project.databases()] == ["home"]
    refused("unknown-database", project.detach, "crm")


def test_connections_go_with_the_address_and_with_the_database(
    project: Headrace, other: str
) -> None:
    engine = project._engine

    def kept() -> Any:
        """The session that is kept for the database's next use."""
        known = engine.catalog.state().databases[-1]
        with engine.source_database(known).session() as session:
            return session

    project.attach("crm", other)
    first = kept()
    assert kept() is first
    project.attach("crm", f"{other} ")
    second = kept()
    assert second is not first
    assert first.closed and not second.closed
    project.detach("crm")
    assert second.closed


def test_a_database_has_one_alias_and_an_alias_one_database(
    project: Headrace, dsn: str, other: str, server: Any
) -> None:
    project.attach("crm", other)
    refused("name-exists", project.attach, "again", other)
    refused("name-exists", project.attach, "shop", dsn)
    with extra_database(server) as third:
        refused("name-exists", project.attach, "crm", third)
        project.attach("third", third)


@pytest.mark.parametrize("alias", ["", "a.b", "Crm", "1st", "x" * 32, "é"])
def test_an_alias_is_a_plain_name(project: Headrace, other: str, alias: str) -> None:
    refused("invalid-name", project.attach, alias, other)


def test_the_home_database_keeps_its_names(project: Headrace, dsn: str, other: str) -> None:
    refused("name-exists", project.attach, "home", other)
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    refused("name-exists", project.attach, name, other)


def test_no_password_comes_into_the_catalog(
    project: Headrace, dsn: str, other: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = psycopg.conninfo.make_conninfo(other, password="hush")
    error = refused("invalid-dsn", project.attach, "crm", secret)
    assert "hush" not in str(error)
    monkeypatch.setenv("CRM_ADDRESS", secret)
    project.attach("crm", "env:CRM_ADDRESS")
    (tmp_path / "address").write_text(secret + "\n")
    project.attach("crm", f"file:{tmp_path / 'address'}")
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT d::text FROM headrace.databases d").fetchall()
    assert "hush" not in str(rows)


def test_a_database_that_does_not_answer_is_not_attached(project: Headrace, tmp_path: Path) -> None:
    refused("server-unreachable", project.attach, "crm", f"host={tmp_path} dbname=nobody")
    assert [one.alias for one in project.databases()] == ["home"]


def test_queries_name_tables_of_several_databases(project: Headrace, other: str) -> None:
    project.attach("crm", other)
    assert reads(
        project,
        "SELECT c.name, sum(o.amount) AS spent FROM orders o"
        " JOIN crm.public.customer c ON c.id = o.customer GROUP BY c.name",
    ) == {"public.orders", "crm.public.customer"}
    assert reads(project, 'SELECT id, grade FROM crm."Odd Place"."Öl"') == {"crm.Odd Place.Öl"}
    # What depends on the key is known at home, too.
    assert reads(
        project, "SELECT id, name, count(*) AS n FROM crm.public.customer GROUP BY id"
    ) == {"crm.public.customer"}


def test_the_home_database_may_be_named(project: Headrace, dsn: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    assert reads(project, f"SELECT id FROM {name}.public.orders") == {"public.orders"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT id FROM crm.public.nothing", "unknown-table"),
        ("SELECT id FROM elsewhere.public.customer", "invalid-query"),
        ("SELECT nothing FROM crm.public.customer", "unknown-column"),
        ("SELECT id FROM crm.public.everybody", "unsupported-source"),
        ("SELECT id FROM customer", "unknown-table"),
        # The type is not in the home database, where the result would be served.
        ("SELECT mood FROM crm.public.customer", "unsupported-type"),
    ],
)
def test_what_cannot_be_read_is_refused(
    project: Headrace, other: str, query: str, code: str
) -> None:
    project.attach("crm", other)
    refused(code, project.explain_strata, {"t": query})


def test_an_enum_that_both_databases_have_can_be_used(
    project: Headrace, dsn: str, other: str
) -> None:
    project.attach("crm", other)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    assert reads(project, "SELECT id, mood FROM crm.public.customer") == {"crm.public.customer"}


def test_looking_up_leaves_nothing_behind(project: Headrace, dsn: str, other: str) -> None:
    project.attach("crm", other)
    reads(project, "SELECT id FROM crm.public.customer")
    with psycopg.connect(dsn) as connection:
        query = "SELECT count(*) FROM pg_class WHERE relname LIKE 'headrace_shadow%'"
        assert connection.execute(query).fetchone() == (0,)
    with pytest.raises(UserError):
        project.explain_strata({"t": "SELECT nothing FROM crm.public.customer"})
