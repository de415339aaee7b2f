"""PostgreSQL's answers to aggregates, and where others differ from them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.string import TextLoader

from headrace.embedded import EmbeddedServer
from headrace.plan.evaluate import Bag
from headrace.types import Type
from tests.query.aggregate_calls import (
    COLUMNS,
    Row,
)


@pytest.fixture(scope="module")
def database(server: EmbeddedServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection with the table."""
    columns = ", ".join(
        f"{name} {type_.sql}" + ' COLLATE "C"' * type_.is_text for name, type_ in COLUMNS
    )
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for name in ("interval", "time"):
            connection.adapters.register_loader(name, TextLoader)
        connection.execute("SET intervalstyle = iso_8601")
        connection.execute(f"CREATE TEMP TABLE t ({columns})")
        yield connection


def answer(database: psycopg.Connection[Any], query: str, rows: Bag) -> list[Row]:
    """PostgreSQL's answer to a query over some rows."""
    database.execute("TRUNCATE t")
    with database.cursor() as cursor:
        places = sql.SQL(", ").join(sql.Placeholder() * len(COLUMNS))
        insert = sql.SQL("INSERT INTO t VALUES ({})").format(places)
        cursor.executemany(insert, list(rows.elements()))
    return list(database.execute(query).fetchall())


def differences(found: Bag, right: list[Row], types: list[Type]) -> list[str]:
    """Where the rows are not the same, column by column; the first columns tell rows apart."""
    ours = sorted(found.elements(), key=_order)
    theirs = sorted(right, key=_order)
    if len(ours) != len(theirs):
        return [f"{len(ours)} rows, not {len(theirs)}"]
    return [
        f"{left[:1]} column {place}: {a!r}, not {b!r}"
        for left, other in zip(ours, theirs, strict=True)
        for place, (a, b, type_) in enumerate(zip(left, other, types, strict=True))
        if not same(a, b, type_)
    ]


def _order(row: Row) -> tuple[str, ...]:
    return tuple(str(value) for value in row[:4])


def same(ours: Any, theirs: Any, type_: Type) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    element = type_.element
    if element is not None:
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(same(a, b, element) for a, b in pairs)
    if type_.is_float:
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-9)
    if type_.rounded:
        scale = min(type_.scale or 0, -theirs.as_tuple().exponent)
        return bool(abs(ours - theirs) <= Decimal(1).scaleb(-scale))
    return bool(ours == theirs)
