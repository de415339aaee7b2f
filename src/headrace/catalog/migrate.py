"""Migrations of the catalog's tables to the version that this Headrace expects."""

from __future__ import annotations

from importlib import resources
from typing import LiteralString

import psycopg
from psycopg import sql

from headrace.catalog import advisory
from headrace.catalog.catalog import Connection
from headrace.errors import Unavailable, UserError
from headrace.source.rights import require_own_schema

# Files of the folder migrations, in order. A file that was released is never changed.
MIGRATIONS = (
    "0001_tables",
    "0002_status",
    "0003_refuse_dml",
    "0004_names_and_views",
    "0005_stages",
    "0006_edges_and_iterations",
    "0007_groups",
    "0008_requests",
    "0009_attached_databases",
    "0010_capture_modes",
    "0011_efforts",
    "0012_append_only",
    "0013_collation",
    "0014_oracles",
    "0015_awaits_rebuild",
    "0016_strangers",
    "0017_failing_ingests",
    "0018_strata",
    "0019_status_of_capture",
    "0020_samples",
    "0021_tiers",
    "0022_quotas",
    "0023_heartbeat",
    "0024_receipt_definitions",
)

# A process that starts while others migrate waits for them longer than sessions wait for a table.
_PATIENCE = "SET LOCAL lock_timeout = '60s'"


def migrate(connection: Connection) -> None:
    """Apply the missing migrations, each in a transaction of its own.

    Any number of processes may migrate at once; a catalog that is up to date is only read. Raise
    `untrusted-object` if others made something in its schema, `migration-newer` if the catalog is
    ahead of this version. The connection is in autocommit mode.
    """
    require_own_schema(connection, "headrace")
    done = _applied(connection)
    while done < len(MIGRATIONS):
        done = _step(connection)


def require_catalog(connection: Connection) -> None:
    """Raise `no-project` if the database has no catalog."""
    if _applied(connection) == 0:
        raise UserError(
            "no-project",
            f"there is no project in database {connection.info.dbname}",
            hint="Make one with `headrace init`, or name another database with --dsn.",
        )


def _step(connection: Connection) -> int:
    """Apply the next migration, if still missing once locked; return how many are applied now."""
    with connection.transaction():
        connection.execute(_PATIENCE)
        # Any role can take an advisory lock, so it is used only as long as there is no table.
        if not _has_table(connection):
            connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", advisory.MIGRATION)
        if _has_table(connection):
            connection.execute("LOCK TABLE headrace.migrations IN SHARE ROW EXCLUSIVE MODE")
        done = _applied(connection)
        if done == len(MIGRATIONS):
            return done
        if done == 0:
            _bootstrap(connection)
        name = MIGRATIONS[done]
        connection.execute(_text(name))
        connection.execute(
            "INSERT INTO headrace.migrations (number, name) VALUES (%s, %s)", (done + 1, name)
        )
    return done + 1


def _bootstrap(connection: Connection) -> None:
    """Create the schema, unless a DBA has created it, and the table of migrations."""
    # IF NOT EXISTS would ask for the right to create schemas even where there is nothing to do.
    if not _exists(connection, "SELECT FROM pg_namespace WHERE nspname = 'headrace'"):
        try:
            connection.execute("CREATE SCHEMA headrace")
        except psycopg.errors.InsufficientPrivilege as error:
            role = sql.Identifier(connection.info.user).as_string(connection)
            raise UserError(
                "permission-denied",
                "the role may not create the schema of the catalog",
                detail=error.diag.message_primary,
                hint=f"Let a DBA run: CREATE SCHEMA headrace AUTHORIZATION {role};",
            ) from None
    connection.execute(
        "CREATE TABLE headrace.migrations (number integer PRIMARY KEY, name text NOT NULL,"
        " applied_at timestamptz NOT NULL DEFAULT now())"
    )


def _exists(connection: Connection, query: LiteralString) -> bool:
    return connection.execute(query).fetchone() is not None


def _has_table(connection: Connection) -> bool:
    # Not to_regclass(): it may answer from what the session cached before it waited for the lock.
    return _exists(
        connection,
        "SELECT FROM pg_tables WHERE schemaname = 'headrace' AND tablename = 'migrations'",
    )


def _applied(connection: Connection) -> int:
    """Return how many migrations the catalog has; 0 if there is no catalog yet."""
    if not _has_table(connection):
        return 0
    row = connection.execute("SELECT coalesce(max(number), 0) FROM headrace.migrations").fetchone()
    done = 0 if row is None else int(row[0])
    if done > len(MIGRATIONS):
        raise Unavailable(
            "migration-newer",
            "the catalog was written by a newer version of Headrace",
            detail=f"It has {done} migrations, this version knows {len(MIGRATIONS)}.",
            hint="Upgrade Headrace here, too.",
        )
    return done


def _text(name: str) -> bytes:
    return (resources.files("headrace.catalog") / "migrations" / f"{name}.sql").read_bytes()
