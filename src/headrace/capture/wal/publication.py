"""The publication that says which tables the slot hands out: made, filled, emptied, looked at.

PostgreSQL decides about every change by the publication as it was when the change was made. A
publication or an entry that was gone for a while has therefore lost changes for good, and newer
servers say no more than a warning: `guard` compares what `read_publication` finds at every cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors, sql

from headrace.capture.setup import perform
from headrace.capture.statements import script
from headrace.errors import Transient, UserError
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.table import SourceTable

PUBLICATION = "headrace"
WAIT = "A table is published while nobody alters, vacuums or indexes it."

# Versions before 18 have no column for generated columns, which is NULL here.
FOUND = """
SELECT p.oid::bigint, p.xmin::text, p.puballtables,
    p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot
        AND coalesce(to_jsonb(p) ->> 'pubgencols' = 's', true),
    ARRAY(
        SELECT jsonb_build_array(r.prrelid::bigint, r.oid::bigint, r.xmin::text,
            r.prqual IS NULL AND r.prattrs IS NULL)
        FROM pg_publication_rel r WHERE r.prpubid = p.oid
    )
FROM pg_publication p WHERE p.pubname = %s
"""

NAMES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY (%s::oid[]) ORDER BY c.oid
"""


@dataclass(frozen=True)
class Entry:
    """That a table is published: a row of pg_publication_rel, new each time the table is added.

    `whole`: all of its rows and columns are.
    """

    oid: int
    xmin: str
    whole: bool = True


@dataclass(frozen=True)
class Publication:
    """The publication in one snapshot. Its own row is new after each change of its options.

    `complete`: every kind of change is published, of partitions in the name of their root.
    """

    oid: int
    xmin: str
    all_tables: bool
    complete: bool
    entries: Mapping[int, Entry]


def read_publication(connection: Connection[Any], name: str = PUBLICATION) -> Publication | None:
    """The publication as the connection's snapshot has it."""
    with translated():
        found = connection.execute(FOUND, (name,)).fetchone()
    if found is None:
        return None
    oid, xmin, all_tables, complete, rows = found
    entries = {source: Entry(*entry) for source, *entry in rows}
    return Publication(oid, xmin, all_tables, complete, entries)


def publish(database: Database, table: SourceTable, name: str = PUBLICATION) -> bool:
    """Have a table published whole, in a publication that is made if need be; False if it was.

    The caller has made sure of the table's replica identity. Raises `source-locked`,
    `cut-interrupted`, and `capture-not-set-up` with the SQL for a DBA.
    """
    with database.session() as connection:
        found = read_publication(connection, name)
    if found is not None and found.all_tables:
        raise UserError(
            "capture-not-set-up",
            f"publication {name} is for all tables",
            detail="Headrace's own publication has only the tables that it reads.",
            hint=f"Let its owner drop or rename it: ALTER PUBLICATION {name} RENAME TO other;",
        )
    statements = publish_sql(table, found, database.version, name)
    if not statements:
        return False

    def anew(connection: Connection[Any]) -> Sequence[sql.Composed]:
        return publish_sql(table, read_publication(connection, name), database.version, name)

    _run(database, anew, statements, f"{table.schema}.{table.name}")
    return True


def publish_sql(
    table: SourceTable, found: Publication | None, version: int, name: str = PUBLICATION
) -> tuple[sql.Composed, ...]:
    """The statements that lead from the publication as it was found to one that has the table."""
    publication = sql.Identifier(name)
    relation = sql.Identifier(table.schema, table.name)
    options = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"
    if version >= 18:
        options += ", publish_generated_columns = stored"
    entry = None if found is None else found.entries.get(table.oid)
    statements: list[sql.Composed] = []
    if found is None:
        statements.append(_sql("CREATE PUBLICATION {} WITH ({})", publication, sql.SQL(options)))
    elif not found.complete:
        statements.append(_sql("ALTER PUBLICATION {} SET ({})", publication, sql.SQL(options)))
    if entry is not None and not entry.whole:
        statements.append(_sql("ALTER PUBLICATION {} DROP TABLE {}", publication, relation))
    if entry is None or not entry.whole:
        statements.append(_sql("ALTER PUBLICATION {} ADD TABLE {}", publication, relation))
    return tuple(statements)


def unpublish(database: Database, oids: Iterable[int], name: str = PUBLICATION) -> None:
    """Take tables out of the publication; with the last one it is dropped.

    Before the last one goes, the slot has to be dropped: it cannot be read without a publication.
    Repeating it does no harm. Raises `source-locked`, and `capture-not-set-up` with the SQL.
    """
    leaving = frozenset(oids)

    def away(connection: Connection[Any]) -> Sequence[sql.Composed]:
        publication = sql.Identifier(name)
        found = read_publication(connection, name)
        if found is None or found.all_tables:
            return ()
        if leaving.issuperset(found.entries):
            return (_sql("DROP PUBLICATION {}", publication),)
        present = sorted(leaving & set(found.entries))
        return tuple(
            _sql("ALTER PUBLICATION {} DROP TABLE {}", publication, sql.Identifier(*names))
            for names in connection.execute(NAMES, (present,)).fetchall()
        )

    with database.session() as connection, translated():
        statements = away(connection)
    if statements:
        _run(database, away, statements, f"publication {name}")


def _run(
    database: Database,
    statements: Callable[[Connection[Any]], Sequence[sql.Composed]],
    complete: Sequence[sql.Composed],
    name: str,
) -> None:
    try:
        perform(database, statements, name, detail=WAIT)
    except errors.InsufficientPrivilege as error:
        raise UserError(
            "capture-not-set-up",
            f"the role may not change what is published of {name}",
            detail=error.diag.message_primary,
            hint=f"Let the role that set capture up, if it owns the table, or a superuser run in"
            f" this database:\n{script(complete)}",
        ) from error
    except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
        raise Transient(
            "cut-interrupted", f"{name} was changed just now", detail=str(error)
        ) from error


def _sql(template: str, *parts: object) -> sql.Composed:
    return sql.SQL(template).format(*parts)
