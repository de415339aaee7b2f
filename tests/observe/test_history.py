"""The refresh history in Python: by the names of stream tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog import Change
from headrace.lifecycle.planned_table import TableRequest
from tests.catalog.examples import REFRESH
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres


def test_lines_have_the_names_of_their_tables(dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE orders (id bigint PRIMARY KEY, amount bigint)")
    with headrace.connect(dsn, home=tmp_path) as project:
        put_tables(
            project,
            TableRequest("one", "SELECT id FROM orders"),
            TableRequest("two", "SELECT amount FROM orders"),
        )
        one, two = (table.relation for table in project.status())
        line = replace(REFRESH, table=one, group=(one, "rgone", two))
        lines = (line, replace(REFRESH, table="rgone"))
        engine = project._engine
        with engine.writing() as lease:
            engine.catalog.commit(Change(refreshes=lines), fence=lease.fence)
        gone, named = project.history()
        assert (named.table, named.group) == (one, (one, "rgone", two))
        assert (named.name, named.group_names) == ("public.one", ("public.one", "public.two"))
        assert (gone.table, gone.name, gone.group_names) == ("rgone", None, ())
        project.alter_stream_table("one", rename_to="first")
        (named,) = project.history("first")
        assert (named.name, named.group_names) == ("public.first", ("public.first", "public.two"))
