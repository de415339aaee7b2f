"""PostgreSQL's own answer to a query, with the order of a stream table among ties."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import psycopg

import headrace
from fuzz.judge import Rows, bag
from headrace.catalog.records import StreamTable

Sql = psycopg.Connection[Any]
# Milliseconds after which PostgreSQL's answer is not waited for any more.
PATIENCE = 120_000
_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*\Z", re.IGNORECASE)
_ORDER = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)


def with_ties_broken(query: str, columns: int) -> str:
    """Return a query whose ORDER BY … LIMIT ends in all output columns, as stream tables do it."""
    limit = _LIMIT.search(query)
    orders = list(_ORDER.finditer(query))
    if limit is None or not orders or _leaves(query[orders[-1].end() : limit.start()]):
        return query
    places = ", ".join(str(place + 1) for place in range(columns))
    return f"{query[: limit.start()].rstrip()}, {places}\n{limit.group()}"


def _leaves(text: str) -> bool:
    """Return whether a text closes a parenthesis that it did not open."""
    depths = accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text)
    return min(depths, default=0) < 0


def answers(hr: headrace.Headrace, sql: Sql, name: str, query: str) -> tuple[Rows, Rows]:
    """Return what is served and what PostgreSQL says, in one snapshot."""
    table: StreamTable | None = hr._engine.catalog.state().stream_table("public", name)  # noqa: SLF001
    assert table is not None
    types = [column.type for column in table.columns]
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        sql.execute(f"SET LOCAL statement_timeout = {PATIENCE}".encode())
        served = bag(sql.execute(f"SELECT * FROM {name}".encode()), types)
        right = sql.execute(with_ties_broken(query, len(types)).encode())
        return served, bag(right, types)
