"""The texts that PostgreSQL is asked instead of Spark, without a stream table that has rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import headrace
from headrace.errors import UserError
from headrace.lifecycle.name_resolver import not_built_in
from headrace.lifecycle.planned_table import TableRequest
from headrace.source.snapshot import answer_in_snapshot
from headrace.verify.oracle import Oracle, oracle_of
from headrace.verify.over_sources import over_sources
from headrace.verify.postgres import _question
from tests.e2e.oracle_queries import QUERIES, TABLES
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture
def project(dsn: str, sql: psycopg.Connection[Any], tmp_path: Path) -> Iterator[headrace.Headrace]:
    """Stream tables without rows: only sources can give an answer."""
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        put_tables(opened, *(TableRequest(name, query) for name, query in QUERIES.items()))
        yield opened


def asked(project: headrace.Headrace, sql: psycopg.Connection[Any], name: str) -> pa.Table:
    """What PostgreSQL answers in a snapshot of now."""
    engine = project._engine
    state = engine.catalog.state()
    table = state.stream_table("public", name)
    assert table is not None
    question = _question(engine, state, table)
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        row = sql.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        conninfo = engine.database.conninfo
        batches = list(
            answer_in_snapshot(conninfo, row[0], question.text, question.columns, not_built_in)
        )
    return pa.concat_tables(batches)


@pytest.mark.parametrize("name", QUERIES)
def test_answers_come_from_sources_alone(
    project: headrace.Headrace, sql: psycopg.Connection[Any], name: str
) -> None:
    answer = asked(project, sql, name)
    for read in ("sums", "viewed"):
        # The same over views instead of stream tables.
        sql.execute(f"DROP TABLE public.{read} CASCADE")
        sql.execute(f"CREATE VIEW {read} AS {QUERIES[read]}")
    expected = sql.execute(QUERIES[name]).fetchall()
    assert answer.num_rows == len(expected) > 0
    if name == "over":
        shown = {(row["c1"], round(row["c2"], 9), row["c3"]) for row in answer.to_pylist()}
        assert shown == {(who, round(twice, 9), total) for who, twice, total in expected}


def test_later_functions_of_users_are_never_run(
    project: headrace.Headrace, sql: psycopg.Connection[Any]
) -> None:
    sql.execute(
        "CREATE FUNCTION sum_of(numeric, numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 0'"
    )
    sql.execute("CREATE AGGREGATE sum (float8) (SFUNC = float8pl, STYPE = float8)")
    asked(project, sql, "sums")
    engine = project._engine
    state = engine.catalog.state()
    table = state.stream_table("public", "sums")
    assert table is not None
    path = ("public", "pg_catalog")
    with pytest.raises(UserError) as caught:
        _question(engine, state, replace(table, search_path=path))
    assert caught.value.message == "aggregate public.sum(double precision) is not built in"


def test_a_text_that_postgresql_cannot_read_is_refused(
    project: headrace.Headrace, sql: psycopg.Connection[Any]
) -> None:
    engine = project._engine
    state = engine.catalog.state()
    table = state.stream_table("public", "joined")
    assert table is not None
    sql.execute("ALTER TABLE customers RENAME TO clients")
    with pytest.raises(UserError) as caught:
        _question(engine, state, table)
    assert caught.value.code == "oracle-unsupported"


def test_failures_of_the_query_are_the_users(
    project: headrace.Headrace, sql: psycopg.Connection[Any]
) -> None:
    put_tables(project, TableRequest("divided", "SELECT id, amount / (id - 5) AS x FROM orders"))
    with pytest.raises(UserError) as caught:
        asked(project, sql, "divided")
    assert caught.value.code == "query-failed"
    assert "division by zero" in caught.value.message


def test_a_name_of_with_is_not_a_stream_table(project: headrace.Headrace) -> None:
    state = project._engine.catalog.state()
    table = state.stream_table("public", "over")
    assert table is not None
    text = over_sources(table, state)
    assert text.count("avg(amount)") == 1
    assert "FROM sums AS s" in text


def test_oracles() -> None:
    assert oracle_of("Postgres") is Oracle.POSTGRES
    with pytest.raises(UserError) as caught:
        oracle_of("delphi")
    assert caught.value.code == "invalid-option"
