"""The statements that set up and remove the capture of a source, run here or by a DBA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from headrace.capture.layout import EMPTIED, SET_UP, buffer_name, function_name, schema_ddl
from headrace.capture.triggers import (
    ALL_TRIGGERS,
    buffer_ddl,
    definition,
    function_ddl,
    trigger_ddl,
)
from headrace.errors import UserError
from headrace.source.introspect import CAPTURE_SCHEMA
from headrace.source.table import SourceTable

# PostgreSQL's limit for tables, without a buffer's own columns.
MOST_COLUMNS = 1600 - 3

REMEMBER = sql.SQL("""\
INSERT INTO {schema}.sources (source, definition, unlogged, max_buffer_bytes)
VALUES ({oid}, {definition}, {unlogged}, {limit})
ON CONFLICT (source) DO UPDATE
SET definition = EXCLUDED.definition, unlogged = EXCLUDED.unlogged,
    max_buffer_bytes = EXCLUDED.max_buffer_bytes""")


@dataclass(frozen=True)
class CaptureOptions:
    """Options of the capture of a source.

    Beyond `max_buffer_mb` triggers record no more changes: the source is copied again instead.
    `unlogged` buffers cost less to write, but after a crash of the server the source is copied.
    """

    max_buffer_mb: int = 1024
    unlogged: bool = False

    @property
    def max_buffer_bytes(self) -> int:
        return self.max_buffer_mb * 1024 * 1024


@dataclass(frozen=True)
class Roles:
    """The roles of capture: `runtime` reads and clears buffers, `owner` owns the source.

    The owner of a partitioned table needs EXECUTE on our function: PostgreSQL clones a row trigger
    to each new partition with the rights of the role that creates it, and fails without EXECUTE.
    """

    runtime: str
    owner: str


def fits_buffer(table: SourceTable) -> bool:
    return len(table.stored) <= MOST_COLUMNS


def setup_sql(
    table: SourceTable,
    roles: Roles,
    options: CaptureOptions,
    *,
    with_schema: bool = True,
    obsolete: Sequence[str] = (),
) -> tuple[sql.Composed, ...]:
    """Return the statements that set up capture of a table, for the first time or again.

    To be run in one transaction. The lock on the table waits for its writers to end, so a copy made
    afterwards has all changes of an older buffer, which is dropped. `obsolete` names triggers to
    drop. Raises `unsupported-source` for a table with too many columns for a buffer.
    """
    if not fits_buffer(table):
        raise UserError(
            "unsupported-source",
            f"{table.schema}.{table.name} has {len(table.stored)} columns to capture; at most"
            f" {MOST_COLUMNS} can be",
            detail="Columns of types that cannot be stored do not count.",
            hint="Divide the columns among several tables.",
        )
    relation = sql.Identifier(table.schema, table.name)
    buffer, function = buffer_name(table.oid), function_name(table.oid)
    runtime, owner = sql.Identifier(roles.runtime), sql.Identifier(roles.owner)
    schema = sql.Identifier(CAPTURE_SCHEMA)
    for_owner = [_sql("GRANT EXECUTE ON FUNCTION {}() TO {}", function, owner)]
    return (
        *(schema_ddl(roles.runtime) if with_schema else ()),
        _sql("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", relation),
        *(_sql("DROP TRIGGER IF EXISTS {} ON {}", sql.Identifier(n), relation) for n in obsolete),
        _sql("DROP TABLE IF EXISTS {}", buffer),
        buffer_ddl(table, unlogged=options.unlogged),
        _sql("CREATE INDEX ON {} (_xid)", buffer),
        _sql("GRANT SELECT, DELETE, TRUNCATE ON {} TO {}", buffer, runtime),
        function_ddl(table, options.max_buffer_bytes),
        _sql("REVOKE ALL ON FUNCTION {}() FROM PUBLIC", function),
        # The function runs with the rights of the buffer's owner.
        _sql("ALTER FUNCTION {}() OWNER TO CURRENT_USER", function),
        *(for_owner if table.row_triggers else ()),
        *trigger_ddl(table),
        REMEMBER.format(
            schema=schema,
            oid=sql.Literal(table.oid),
            definition=sql.Literal(definition(table, unlogged=options.unlogged)),
            unlogged=sql.Literal(options.unlogged),
            limit=sql.Literal(options.max_buffer_bytes),
        ),
        _sql(
            "INSERT INTO {}.recopy_reasons (source, reason) VALUES ({}, {})",
            schema,
            table.oid,
            SET_UP,
        ),
    )


def limit_sql(table: SourceTable, options: CaptureOptions) -> tuple[sql.Composed, ...]:
    """Return the statements that give a captured table another limit."""
    return (
        function_ddl(table, options.max_buffer_bytes),
        _sql(
            "UPDATE {}.sources SET max_buffer_bytes = {} WHERE source = {}",
            sql.Identifier(CAPTURE_SCHEMA),
            options.max_buffer_bytes,
            table.oid,
        ),
    )


def persistence_sql(
    table: SourceTable, options: CaptureOptions, *, revive: bool
) -> tuple[sql.Composed, ...]:
    """Return the statements that make the buffer of a captured table unlogged, or logged.

    The first statement blocks writers until the transaction ends, and a crash would roll it back. A
    logged buffer was not emptied by an earlier crash, which `revive` notes in `alive`. An unlogged
    buffer that becomes logged loses its sign of an earlier crash, so the source is then copied.
    """
    schema, oid = sql.Identifier(CAPTURE_SCHEMA), table.oid
    alive = _sql("INSERT INTO {}.alive (source) VALUES ({}) ON CONFLICT DO NOTHING", schema, oid)
    emptied = _sql(
        "INSERT INTO {0}.recopy_reasons (source, reason) SELECT {1}, {2}\n"
        "WHERE NOT EXISTS (SELECT FROM {0}.alive a WHERE a.source = {1})",
        schema,
        oid,
        EMPTIED,
    )
    return (
        _sql(
            "ALTER TABLE {} SET {}",
            buffer_name(oid),
            sql.SQL("UNLOGGED" if options.unlogged else "LOGGED"),
        ),
        *((alive,) if options.unlogged and revive else ()),
        *(() if options.unlogged else (emptied,)),
        _sql(
            "UPDATE {}.sources SET definition = {}, unlogged = {} WHERE source = {}",
            schema,
            definition(table, unlogged=options.unlogged),
            options.unlogged,
            oid,
        ),
    )


def teardown_sql(
    oid: int, relation: sql.Identifier | None, *, for_good: bool = True
) -> tuple[sql.Composed, ...]:
    """Return the statements that remove the capture of a source; no `relation`: it was dropped.

    Unless `for_good`, the latest epoch of the source stays announced.
    """
    triggers = ALL_TRIGGERS if relation is not None else ()
    return (
        *(_sql("DROP TRIGGER IF EXISTS {} ON {}", sql.Identifier(n), relation) for n in triggers),
        _sql("DROP FUNCTION IF EXISTS {}()", function_name(oid)),
        _sql("DROP TABLE IF EXISTS {}", buffer_name(oid)),
        *(
            _sql("DELETE FROM {} WHERE source = {}", sql.Identifier(CAPTURE_SCHEMA, name), oid)
            for name in (
                "sources",
                "recopy_reasons",
                "alive",
                *(("announced",) if for_good else ()),
            )
        ),
    )


def script(statements: Sequence[sql.Composable]) -> str:
    """Return the statements as one transaction for psql."""
    lines = ["BEGIN", *(statement.as_string() for statement in statements), "COMMIT"]
    return "".join(f"{line};\n" for line in lines)


def _sql(template: str, *parts: object) -> sql.Composed:
    return sql.SQL(template).format(*parts)
