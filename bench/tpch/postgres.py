"""PostgreSQL's side: its settings, and the queries as materialized views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from bench.tpch.rounds import seconds
from headrace.embedded import EmbeddedServer

LIMIT_SECONDS = 20
SCHEMA = "plain"

# What a server of this size would be given; everything else is as PostgreSQL has it by itself.
SETTINGS = {
    "shared_buffers": "1GB",
    "effective_cache_size": "4GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "8GB",
    "random_page_cost": "1.1",
}
SHOWN = (
    *SETTINGS,
    "max_parallel_workers_per_gather",
    "max_worker_processes",
    "jit",
    "wal_level",
    "synchronous_commit",
)

Sql = psycopg.Connection[Any]


def tune(home: Path) -> None:
    """Give the home folder's server its settings, before anything else uses it."""
    with EmbeddedServer.open(home) as server, psycopg.connect(server.dsn, autocommit=True) as sql:
        for name, value in SETTINGS.items():
            sql.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())


def settings(sql: Sql) -> dict[str, str]:
    rows = sql.execute(
        "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(%s)", (list(SHOWN),)
    )
    return {str(name): str(value) for name, value in rows}


def refresh_times(sql: Sql, name: str, query: str, times: int) -> list[float] | None:
    """Seconds of REFRESH MATERIALIZED VIEW, after one of warm-up; None if one takes too long."""
    view = f"{SCHEMA}.{name}"
    sql.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
    sql.execute(f"CREATE MATERIALIZED VIEW {view} AS {query} WITH NO DATA".encode())
    statement = f"REFRESH MATERIALIZED VIEW {view}".encode()
    sql.execute(f"SET statement_timeout = '{LIMIT_SECONDS}s'".encode())
    try:
        return [seconds(lambda: sql.execute(statement)) for _ in range(1 + times)][1:]
    except psycopg.errors.QueryCanceled:
        return None
    finally:
        sql.execute("RESET statement_timeout")
        sql.execute(f"DROP MATERIALIZED VIEW {view}".encode())
