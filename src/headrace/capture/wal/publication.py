"""The publication whose tables the slot sends: creating it, adding, removing and reading tables.

PostgreSQL filters every change by the publication as it was at the time of the change. A
publication or an entry that was missing for a while has therefore lost changes for good, and newer
servers only warn: `slot_probe` compares the publication with the record at every cut.
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
WAIT = "Adding a table to a publication waits for ALTER, VACUUM and CREATE INDEX on it."

# Versions before 18 have no column for generated columns, which is NULL here.
PUBLICATION_ROW = """
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
    """A table in the publication: a row of pg_publication_rel, new each time the table is added.

    `whole`: without row filter and column list.
    """

    oid: int
    xmin: str
    whole: bool = True


@dataclass(frozen=True)
class Publication:
    """The publication in one snapshot; `xmin` changes with every change of its options.

    `complete`: all kinds of changes are published, those of partitions under their root.
    """

    oid: int
    xmin: str
    all_tables: bool
    complete: bool
    entries: Mapping[int, Entry]


def read_publication(connection: Connection[Any], name: str = PUBLICATION) -> Publication | None:
    """Return the publication in the connection's snapshot; None if there is none."""
    with translated():
        row = connection.execute(PUBLICATION_ROW, (name,)).fetchone()
    if row is None:
        return None
    oid, xmin, all_tables, complete, rows = row
    entries = {source: Entry(*entry) for source, *entry in rows}
    return Publication(oid, xmin, all_tables, complete, entries)


def add_to_publication(database: Database, table: SourceTable, name: str = PUBLICATION) -> bool:
    """Add a table to the publication, created if need be; return False if nothing was to do.

    The caller has checked the table's replica identity. Raises `source-locked`,
    `cut-interrupted`, and `capture-not-set-up` with the SQL for a DBA.
    """
    with database.session() as connection:
        publication = read_publication(connection, name)
    if publication is not None and publication.all_tables:
        raise UserError(
            "capture-not-set-up",
            f"publication {name} is FOR ALL TABLES",
            detail="Headrace's own publication lists only the tables that it reads.",
            hint=f"Have its owner drop or rename it: ALTER PUBLICATION {name} RENAME TO other;",
        )
    statements = add_table_sql(table, publication, database.version, name)
    if not statements:
        return False

    def missing_statements(connection: Connection[Any]) -> Sequence[sql.Composed]:
        return add_table_sql(table, read_publication(connection, name), database.version, name)

    _run(database, missing_statements, statements, f"{table.schema}.{table.name}")
    return True


def add_table_sql(
    table: SourceTable, publication: Publication | None, version: int, name: str = PUBLICATION
) -> tuple[sql.Composed, ...]:
    """Return the statements that add the table to the publication as it is now."""
    identifier = sql.Identifier(name)
    relation = sql.Identifier(table.schema, table.name)
    options = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"
    if version >= 18:
        options += ", publish_generated_columns = stored"
    entry = None if publication is None else publication.entries.get(table.oid)
    statements: list[sql.Composed] = []
    if publication is None:
        statements.append(_sql("CREATE PUBLICATION {} WITH ({})", identifier, sql.SQL(options)))
    elif not publication.complete:
        statements.append(_sql("ALTER PUBLICATION {} SET ({})", identifier, sql.SQL(options)))
    if entry is not None and not entry.whole:
        statements.append(_sql("ALTER PUBLICATION {} DROP TABLE {}", identifier, relation))
    if entry is None or not entry.whole:
        statements.append(_sql("ALTER PUBLICATION {} ADD TABLE {}", identifier, relation))
    return tuple(statements)


def remove_from_publication(
    database: Database, oids: Iterable[int], name: str = PUBLICATION
) -> None:
    """Remove tables from the publication, and drop the publication with its last table.

    Drop the slot before the last table: it cannot be read without a publication. Repeating the
    call does no harm. Raises `source-locked`, and `capture-not-set-up` with the SQL for a DBA.
    """
    leaving = frozenset(oids)

    def remaining_statements(connection: Connection[Any]) -> Sequence[sql.Composed]:
        identifier = sql.Identifier(name)
        publication = read_publication(connection, name)
        if publication is None or publication.all_tables:
            return ()
        if leaving.issuperset(publication.entries):
            return (_sql("DROP PUBLICATION {}", identifier),)
        present = sorted(leaving & set(publication.entries))
        return tuple(
            _sql("ALTER PUBLICATION {} DROP TABLE {}", identifier, sql.Identifier(*names))
            for names in connection.execute(NAMES, (present,)).fetchall()
        )

    with database.session() as connection, translated():
        statements = remaining_statements(connection)
    if statements:
        _run(database, remaining_statements, statements, f"publication {name}")


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
            f"permission denied to change what is published of {name}",
            detail=error.diag.message_primary,
            hint=f"Have the role that set capture up, if it owns the table, or a superuser run in"
            f" this database:\n{script(complete)}",
        ) from error
    except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
        raise Transient(
            "cut-interrupted", f"{name} was changed just now", detail=str(error)
        ) from error


def _sql(template: str, *parts: object) -> sql.Composed:
    return sql.SQL(template).format(*parts)
