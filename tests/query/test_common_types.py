"""The one type of several branches: as in PostgreSQL, for every pair of types."""

from __future__ import annotations

import itertools
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.query import BoundColumn, BoundTable, bind
from headrace.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, Type, numeric, result_numeric
from tests.query.column_types import ours, postgres_types

pytestmark = pytest.mark.postgres
TYPES = (
    BOOLEAN,
    Type("smallint"),
    INTEGER,
    BIGINT,
    Type("real"),
    DOUBLE,
    result_numeric(38, 18),
    numeric(10, 2),
    numeric(12, 1),
    Type("text", ordered=False),
    Type("character varying", length=5, ordered=False),
    Type("character varying", length=5),
    Type("character varying", length=7, ordered=False),
    Type("character", length=3, ordered=False),
    Type("date"),
    Type("timestamp"),
    Type("uuid"),
    Type("bytea"),
)


class OneTable:
    """A table with a column of every type."""

    def resolve(self, schema: str | None, name: str) -> BoundTable:
        columns = (BoundColumn(f"c{i}", f"c{i}", t, t.sql) for i, t in enumerate(TYPES))
        return BoundTable("r1", "public", "t", tuple(columns))


def declared(type_: Type) -> str:
    return type_.sql + (' COLLATE "C"' if type_.is_text and type_.ordered else "")


def found(connection: psycopg.Connection[Any], query: str) -> list[str] | None:
    try:
        return ours(connection, [column.type for column in bind(query, OneTable()).plan.columns])
    except UserError:
        return None


def given(connection: psycopg.Connection[Any], query: str) -> list[str] | None:
    try:
        return postgres_types(connection, query)
    except (psycopg.errors.DatatypeMismatch, psycopg.errors.CannotCoerce):
        return None


def test_every_pair(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        columns = ", ".join(f"c{i} {declared(type_)}" for i, type_ in enumerate(TYPES))
        connection.execute(f"CREATE TABLE t ({columns})")
        for a, b in itertools.product(range(len(TYPES)), repeat=2):
            # Mixing char(n) with other texts is refused.
            mixed = {TYPES[a].kind, TYPES[b].kind}
            if "character" in mixed and mixed & {"text", "character varying"}:
                continue
            for query in (
                f"SELECT c{a} AS x FROM t UNION ALL SELECT c{b} FROM t",
                f"SELECT c{a} AS x FROM t UNION ALL SELECT NULL FROM t UNION ALL SELECT c{b} FROM t"
                if TYPES[a].kind != "character"
                else f"SELECT coalesce(c{a}, c{b}) AS x FROM t",
                f"SELECT CASE WHEN c0 THEN c{a} ELSE c{b} END AS x FROM t",
            ):
                assert found(connection, query) == given(connection, query), query
