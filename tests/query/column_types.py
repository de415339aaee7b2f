"""Types of a query's columns: PostgreSQL's, and those that the binder found."""

from __future__ import annotations

from typing import Any

import psycopg

from headrace.types import Type


def postgres_types(connection: psycopg.Connection[Any], query: str) -> list[str]:
    """The types of the query's columns, with their lengths and digits."""
    connection.execute(f"CREATE TEMP VIEW shown AS {query}")
    found = columns_of(connection, "shown")
    connection.execute("DROP VIEW shown")
    return found


def ours(connection: psycopg.Connection[Any], types: list[Type]) -> list[str]:
    """The same for the types that the binder found."""
    columns = ", ".join(f"c{i} {type_.sql}" for i, type_ in enumerate(types))
    connection.execute(f"CREATE TEMP TABLE ours ({columns})")
    found = columns_of(connection, "ours")
    connection.execute("DROP TABLE ours")
    return found


def columns_of(connection: psycopg.Connection[Any], relation: str) -> list[str]:
    rows = connection.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        [relation],
    )
    return [row[0] for row in rows]
