"""Remove Headrace from the databases and from the store, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psycopg import Connection, errors, sql

from headrace.capture.setup import perform
from headrace.capture.statements import script
from headrace.capture.wal.following import Following
from headrace.capture.wal.publication import PUBLICATION, read_publication
from headrace.capture.wal.slot import drop, read_status, slot_busy
from headrace.catalog import Change, State, Transaction
from headrace.catalog.records import StreamTable
from headrace.engine import HOME, Engine
from headrace.engine.steps import DropLog, RemoveCapture, RemoveCatalog
from headrace.errors import UserError
from headrace.publish.partitions import partitions
from headrace.publish.served import COMMENT, INDEX_OPTIONS, index_name, served_name
from headrace.relations.compaction import Merges
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA

CATALOG_SCHEMA = "headrace"

# A trigger of a partitioned table goes with its clones.
TRIGGERS = """
SELECT g.tgname, n.nspname, c.relname
FROM pg_trigger g
JOIN pg_proc p ON p.oid = g.tgfoid
JOIN pg_namespace o ON o.oid = p.pronamespace AND o.nspname = %s
JOIN pg_class c ON c.oid = g.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT g.tgisinternal AND g.tgparentid = 0
ORDER BY 2, 3, 1
"""

MAY_DROP_SLOTS = "SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user"

# What is in a schema, as DROP names it, each kind after what depends on it.
CONTENTS = """
SELECT 1, 'VIEW', c.oid::regclass::text FROM pg_class c
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind = 'v'
UNION ALL
SELECT 2, 'TABLE', string_agg(c.oid::regclass::text, ', ' ORDER BY c.relname) FROM pg_class c
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind = 'r' HAVING count(*) > 0
UNION ALL
SELECT 3, 'FUNCTION', p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = %(schema)s::regnamespace
UNION ALL
SELECT 4, 'SEQUENCE', c.oid::regclass::text FROM pg_class c
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind = 'S'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i'))
UNION ALL
SELECT 5, 'TYPE', c.reltype::regtype::text FROM pg_class c
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind = 'c'
ORDER BY 1, 3
"""


def uninstall(engine: Engine, *, keep_tables: bool) -> None:
    """Remove capture, logs, served tables and catalog; repeat it to finish what was begun.

    Everything is rehearsed first, in transactions that are rolled back: where objects of users need
    what would go, where a role lacks a right and where a database or the store does not answer,
    nothing is done.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        for following, database in _databases(engine, state):
            if following is not None:
                engine.slot_readers.release(following.slot)
            _rehearse_capture(database, following)
        engine.store.require_writable()
        with engine.database.session() as connection:
            home = _home_sql(connection, state.stream_tables, keep_tables=keep_tables)
            with translated(), connection.transaction(force_rollback=True):
                _execute(connection, home)
        for following, database in _databases(engine, state):
            with engine.step(RemoveCapture()):
                if following is not None:
                    engine.slot_readers.release(following.slot)
                _remove_capture(database, following)
        # No merge may write into the folder of a log while the log is removed.
        engine.part(Merges).wait()
        for relation in state.relations:
            with engine.step(DropLog(relation.id)):
                engine.store.drop(relation.id)

        def apply(transaction: Transaction) -> None:
            _execute(transaction, home)

        with engine.step(RemoveCatalog()):
            engine.catalog.commit(Change(), fence=lease.fence, apply=apply)


def uninstall_sql(engine: Engine, *, keep_tables: bool) -> str:
    """Return what `uninstall` would run, as a script for psql; the logs in the store stay.

    What is for an attached database stands first, under its alias.
    """
    state = engine.catalog.state()
    parts = []
    for database in state.databases:
        if database.id != HOME:
            with engine.source_database(database).session() as connection:
                capture = script(_capture_sql(connection, database.following))
            parts.append(f"-- In the attached database {database.alias}:\n{capture}")
    with engine.database.session() as connection:
        following = next(
            (database.following for database in state.databases if database.id == HOME), None
        )
        capture_at_home = _capture_sql(connection, following)
        home = _home_sql(connection, state.stream_tables, keep_tables=keep_tables)
    own = script((*capture_at_home, *home))
    return "\n".join((*parts, f"-- In the home database:\n{own}")) if parts else own


def _databases(engine: Engine, state: State) -> tuple[tuple[Following | None, Database], ...]:
    """Return all databases, home last, each with its replication slot's record."""
    home = next((database.following for database in state.databases if database.id == HOME), None)
    others = [
        (database.following, engine.source_database(database))
        for database in state.databases
        if database.id != HOME
    ]
    return (*others, (home, engine.database))


def _remove_capture(database: Database, following: Following | None) -> None:
    if following is not None:
        # No rollback restores a dropped slot.
        drop(database, following.slot)
    _perform_removal(database, following)


def _rehearse_capture(database: Database, following: Following | None) -> None:
    """Raise what would prevent the removal of capture; change nothing."""
    if following is not None:
        with database.session() as connection, translated():
            row = connection.execute(MAY_DROP_SLOTS).fetchone()
            status = read_status(connection, following.slot)
        if status is not None and status.active_pid is not None:
            raise slot_busy(following.slot, status)
        if row is not None and not row[0]:
            raise UserError(
                "permission-denied",
                f"the role may not drop replication slot {following.slot}",
                hint="Give it REPLICATION, or let a superuser run what --print-sql prints.",
            )
    _perform_removal(database, following, rehearse=True)


def _perform_removal(
    database: Database, following: Following | None, *, rehearse: bool = False
) -> None:
    with database.session() as connection:
        capture = _capture_sql(connection, following, with_slot=not rehearse)
    try:
        perform(database, lambda _: capture, "a source", rehearse=rehearse)
    except errors.InsufficientPrivilege as error:
        raise UserError(
            "permission-denied",
            "the role may not take away change capture",
            detail=error.diag.message_primary,
            hint="Let a superuser run what --print-sql prints.",
        ) from error


def _capture_sql(
    connection: Connection[Any], following: Following | None, *, with_slot: bool = True
) -> tuple[sql.Composed, ...]:
    with translated():
        triggers = connection.execute(TRIGGERS, [CAPTURE_SCHEMA]).fetchall()
    return (
        *_wal_capture_sql(connection, following, with_slot=with_slot),
        *(_drop("TRIGGER", name, sql.Identifier(*table)) for name, *table in triggers),
        *_schema_sql(connection, CAPTURE_SCHEMA),
    )


def _wal_capture_sql(
    connection: Connection[Any], following: Following | None, *, with_slot: bool
) -> Iterator[sql.Composed]:
    """Yield the SQL that drops slot and publication; without a publication no slot can be read."""
    if following is None:
        return
    if with_slot and read_status(connection, following.slot) is not None:
        name = sql.Literal(following.slot)
        yield sql.SQL("SELECT pg_drop_replication_slot({})").format(name)
    if read_publication(connection) is not None:
        yield sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(PUBLICATION))


def _home_sql(
    connection: Connection[Any], tables: Sequence[StreamTable], *, keep_tables: bool
) -> tuple[sql.Composed, ...]:
    if not keep_tables:
        names = [served_name(table) for table in tables]
        listed = sql.SQL(", ").join(names)
        served: tuple[sql.Composed, ...] = (
            (sql.SQL("DROP TABLE IF EXISTS {}").format(listed),) if names else ()
        )
    else:
        served = tuple(part for table in tables for part in _ordinary(connection, table))
    return (*served, *_schema_sql(connection, CATALOG_SCHEMA))


def _ordinary(connection: Connection[Any], table: StreamTable) -> list[sql.Composed]:
    """Return SQL that makes a served table an ordinary one, without our guard, index and comment.

    The index of a key that its owner asked for stays.
    """
    name = served_name(table)
    guarded = (name, *(partition.name for partition in partitions(connection, table)))
    parts = [_drop("TRIGGER", "headrace_refuse_dml", partition) for partition in guarded]
    if not any(option in table.options for option in INDEX_OPTIONS):
        index = sql.Identifier(table.schema, index_name(table))
        parts.append(sql.SQL("DROP INDEX IF EXISTS {}").format(index))
    row = connection.execute(
        "SELECT obj_description(to_regclass(%s))", [name.as_string()]
    ).fetchone()
    if row is not None and row[0] == COMMENT:
        parts.append(sql.SQL("COMMENT ON TABLE {} IS NULL").format(name))
    return parts


def _schema_sql(connection: Connection[Any], schema: str) -> list[sql.Composed]:
    """Return SQL that drops each object of our schema by name, so that users' objects stop it."""
    present = connection.execute("SELECT to_regnamespace(%s)", [schema]).fetchone()
    if present is None or present[0] is None:
        return []
    with translated():
        contents = connection.execute(CONTENTS, {"schema": schema}).fetchall()
    parts = [sql.SQL(f"DROP {kind} {name}").format() for _, kind, name in contents]
    return [*parts, sql.SQL("DROP SCHEMA {}").format(sql.Identifier(schema))]


def _drop(kind: str, name: str, table: sql.Identifier) -> sql.Composed:
    return sql.SQL(f"DROP {kind} IF EXISTS {{}} ON {{}}").format(sql.Identifier(name), table)


def _execute(connection: Connection[Any], statements: Sequence[sql.Composed]) -> None:
    try:
        for statement in statements:
            connection.execute(statement)
    except errors.DependentObjectsStillExist as error:
        raise UserError(
            "has-dependents",
            "objects of users need what would be removed",
            detail=error.diag.message_detail,
            hint="Drop them first; --keep-tables leaves the stream tables as ordinary tables.",
        ) from error
