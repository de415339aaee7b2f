"""A part of a loaded database, with valid keys: what tests can afford of the smallest scale."""

from __future__ import annotations

from typing import Any

import psycopg

from bench.tpcds.schema import KEYS, SALES_OF, TABLES, key, references

# Dimensions whose rows are kept only where something refers to them, but for some days.
LARGE = ("customer_demographics", "household_demographics", "time_dim", "catalog_page", "date_dim")
KEPT = {"date_dim": "d_year BETWEEN 1998 AND 2002 AND d_dom % 4 = 1"}


def thin(sql: psycopg.Connection[Any], part: int) -> None:
    """Keep one of `part` orders of each channel, with what belongs to it."""
    for sold in SALES_OF.values():
        _, order = key(sold)
        sql.execute(f"DELETE FROM {sold} WHERE {order} % {part} <> 0".encode())
    for table, sold in SALES_OF.items():
        own, theirs = (", ".join(key(one)) for one in (table, sold))
        sql.execute(
            f"DELETE FROM {table} WHERE ({own}) NOT IN (SELECT {theirs} FROM {sold})".encode()
        )
    sql.execute(f"DELETE FROM inventory WHERE inv_item_sk % {part} <> 0".encode())
    for table in LARGE:
        (own,) = key(table)
        used = " UNION ".join(
            f"SELECT {column} FROM {other}"
            for other in (*KEYS, *(other for other in TABLES if other not in KEYS))
            for column, dimension in references(other).items()
            if dimension == table
        )
        kept = KEPT.get(table, "false")
        sql.execute(
            f"DELETE FROM {table} WHERE NOT ({kept}) AND {own} NOT IN"
            f" (SELECT * FROM ({used}) AS used(key) WHERE key IS NOT NULL)".encode()
        )
