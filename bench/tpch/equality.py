"""Stream tables against PostgreSQL's own answers, each pair in one snapshot."""

from __future__ import annotations

from typing import Any

import psycopg

import headrace
from fuzz.judge import Rows, bag, difference
from headrace.catalog.records import StreamTable

# Milliseconds after which PostgreSQL's answer is not waited for any more.
PATIENCE = 120_000


def answers(
    hr: headrace.Headrace, sql: psycopg.Connection[Any], name: str, query: str
) -> tuple[Rows, Rows]:
    """What is served and what PostgreSQL says, in one snapshot."""
    table: StreamTable | None = hr._engine.catalog.state().stream_table("public", name)  # noqa: SLF001
    assert table is not None
    types = [column.type for column in table.columns]
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        served = bag(sql.execute(f"SELECT * FROM {name}".encode()), types)
        return served, bag(sql.execute(query.encode()), types)


def judge(
    hr: headrace.Headrace, sql: psycopg.Connection[Any], name: str, query: str
) -> tuple[str, str | None]:
    """Who was asked (postgres, or spark where that takes too long), and what differs, if anything.

    Spark recomputes the query from the sources as they were taken in.
    """
    sql.execute(f"SET statement_timeout = {PATIENCE}".encode())
    try:
        served, right = answers(hr, sql, name, query)
        return "postgres", None if served == right else difference(served, right)
    except psycopg.errors.QueryCanceled:
        receipt = hr.verify(name)
        detail = None if receipt.equal else f"missing {receipt.missing} surplus {receipt.surplus}"
        return "spark", detail
    finally:
        sql.execute("RESET statement_timeout")
