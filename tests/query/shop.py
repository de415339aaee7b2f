"""A small shop: its tables as the binder and as PostgreSQL see them, and rows with NULLs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import sql

from headrace.algebra.scalar import Value
from headrace.plan.evaluate import Bag
from headrace.plan.operators import Scan
from headrace.query import BoundColumn, BoundTable
from headrace.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type, numeric, result_numeric

Row = tuple[Value, ...]

LOCAL_TEXT = replace(TEXT, ordered=False)


@dataclass(frozen=True)
class Table:
    """A table with its rows; `declared` is the type in DDL where that is not `type.sql`."""

    name: str
    columns: tuple[tuple[str, Type | None, str], ...]
    keys: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...]

    @property
    def bound(self) -> BoundTable:
        return BoundTable(
            f"r_{self.name.lower()}",
            "public",
            self.name,
            tuple(
                BoundColumn(name, f"c{i}", type_, declared)
                for i, (name, type_, declared) in enumerate(self.columns, 1)
            ),
            self.keys,
        )

    @property
    def ddl(self) -> str:
        columns = ", ".join(
            sql.Identifier(name).as_string() + " " + declared for name, _, declared in self.columns
        )
        keys = "".join(f", PRIMARY KEY ({', '.join(key)})" for key in self.keys)
        return f'CREATE TABLE "{self.name}" ({columns}{keys})'


def _column(name: str, type_: Type, *, collate: bool = False) -> tuple[str, Type, str]:
    return name, type_, type_.sql + (' COLLATE "C"' if collate else "")


def timestamp(*parts: int) -> datetime:
    """A timestamp without time zone."""
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


CUSTOMERS = Table(
    "customers",
    (
        _column("id", INTEGER),
        _column("region", Type("character varying", length=10, ordered=False)),
        _column("code", Type("character", length=3, ordered=False)),
        _column("Name", TEXT, collate=True),
        _column("vip", BOOLEAN),
    ),
    (("id",),),
    (
        (1, "north", "a", "Ann", True),
        (2, "north", "ab", "bob", False),
        (3, "south", "abc", "Ćeda", None),
        (4, None, None, None, True),
        (5, "a  ", "a", "O'Hara \\ 5%", False),
    ),
)
ORDERS = Table(
    "orders",
    (
        _column("id", INTEGER),
        _column("customer", INTEGER),
        _column("amount", numeric(10, 2)),
        _column("tax", result_numeric(38, 18)),
        _column("qty", Type("smallint")),
        _column("weight", DOUBLE),
        _column("note", LOCAL_TEXT),
        _column("d", Type("date")),
        _column("at", Type("timestamp")),
        ("price", None, "money"),
        _column("big", BIGINT),
    ),
    (("id",),),
    (
        (1, 1, Decimal("10.00"), Decimal("0.5"), 1, 1.5, "x", date(2024, 1, 1),
         timestamp(2024, 1, 1), None, 10**12),
        (2, 1, Decimal("2.50"), None, 2, None, "y%", date(2024, 1, 2),
         timestamp(2024, 1, 1, 12), None, 5),
        (3, 2, None, Decimal("0.125"), None, -0.5, None, None, None, None, None),
        (4, None, Decimal("0.00"), Decimal("3"), 0, 0.0, "", date(2024, 2, 29),
         timestamp(2024, 2, 29, 0, 0, 0, 1), None, 0),
        (5, 3, Decimal("-7.25"), Decimal("0.000001"), -3, 2.5, "x", date(2023, 12, 31),
         timestamp(2024, 1, 2), None, -5),
    ),
)  # fmt: skip
# No key, and equal rows.
LINES = Table(
    "lines",
    (_column("orders", INTEGER), _column("item", TEXT, collate=True), _column("n", INTEGER)),
    (),
    ((1, "a", 1), (1, "a", 1), (1, "b", 2), (2, "b", None), (None, "a", 4), (3, None, 5)),
)
ODD = Table(
    "Odd Name",
    (_column("id", INTEGER), _column("Id", INTEGER), _column('a"b', INTEGER), _column("é", TEXT)),
    (("id",),),
    ((1, 2, 3, "é"), (2, 2, None, None)),
)
TABLES = (CUSTOMERS, ORDERS, LINES, ODD)


class Shop:
    """The schema of the shop."""

    def resolve(self, schema: str | None, name: str) -> BoundTable | None:
        if schema not in (None, "public"):
            return None
        return next((table.bound for table in TABLES if table.name == name), None)


def read(scan: Scan) -> Bag:
    """A scan's rows for the pure evaluator."""
    table = next(table for table in TABLES if table.bound.relation == scan.relation)
    physical = [column.physical for column in table.bound.columns]
    places = [physical.index(name) for name, _ in scan.fields]
    return Counter(tuple(row[place] for place in places) for row in table.rows)


def load(connection: psycopg.Connection[Any]) -> None:
    """Make the tables with their rows."""
    for table in TABLES:
        connection.execute(table.ddl)
        places = sql.SQL(", ").join(sql.Placeholder() * len(table.columns))
        name = sql.Identifier(table.name)
        with connection.cursor() as cursor:
            insert = sql.SQL("INSERT INTO {} VALUES ({})").format(name, places)
            cursor.executemany(insert, table.rows)
