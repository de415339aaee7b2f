"""The tables in PostgreSQL: created, filled from files, with keys and indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from bench.tpcds.schema import KEYS, TABLES, key, references

BLOCK = 1 << 20


def create_tables(sql: psycopg.Connection[Any]) -> None:
    """Create the tables without keys: those come with `add_keys`, when the rows are there."""
    for name, columns in TABLES.items():
        sql.execute(f"CREATE TABLE {name} ({columns})".encode())


def load(sql: psycopg.Connection[Any], folder: Path) -> dict[str, int]:
    """Fill the tables from files <table>.csv; return the rows of each."""
    return {name: _load(sql, name, folder / f"{name}.csv") for name in TABLES}


def _load(sql: psycopg.Connection[Any], name: str, path: Path) -> int:
    with path.open("rb") as file, sql.cursor() as cursor:
        header = file.readline().decode().strip()
        copy = f"COPY {name} ({header}) FROM STDIN (FORMAT csv)"
        with cursor.copy(copy.encode()) as stream:
            while block := file.read(BLOCK):
                stream.write(block)
        return cursor.rowcount


def add_keys(sql: psycopg.Connection[Any]) -> None:
    """Add primary keys, and indexes on what refers from the large tables to others."""
    for name in TABLES:
        sql.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({', '.join(key(name))})".encode())
    for name in KEYS:
        for column in references(name):
            if column != key(name)[0]:
                sql.execute(f"CREATE INDEX ON {name} ({column})".encode())
    sql.execute("VACUUM (ANALYZE)")
