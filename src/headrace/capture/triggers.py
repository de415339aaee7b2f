"""The DDL of capture by triggers, as data: what is run is what a DBA is shown.

In schema `headrace_capture` of the source database:

    sources       one row a source: what was set up, what is acknowledged, whether a copy is due
    dirt          one row for each time a trigger could not record a change
    alive         unlogged, one row a source that was copied: a crash of the server empties it
    buffer_<oid>  the changes of one source: −1 with the old image, +1 with the new
    capture_<oid> the trigger function of one source

A trigger never fails the user's statement: what it cannot record it notes in `dirt`, which makes
the next ingest copy the source anew. It never uses NOTIFY, after which PostgreSQL refuses PREPARE
TRANSACTION. TRUNCATE needs no trigger: it changes `SourceTable.storage`.

A note in `dirt` may be left out only if an earlier one is sure to be still there when the user's
transaction ends. Hence FOR KEY SHARE: it keeps the earlier note from being deleted until then, and
fails or finds nothing if it is deleted already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from headrace.source.introspect import CAPTURE_SCHEMA
from headrace.source.table import SourceColumn, SourceTable

# Enum and domain types are kept out of buffers: a buffer must not stand in the way of DROP TYPE.
BUFFER_TYPES = {"enum": "text", "character": "bpchar"}
STATEMENT_TRIGGERS = (
    ("headrace_capture_insert", "INSERT", "NEW TABLE AS headrace_new"),
    ("headrace_capture_update", "UPDATE", "OLD TABLE AS headrace_old NEW TABLE AS headrace_new"),
    ("headrace_capture_delete", "DELETE", "OLD TABLE AS headrace_old"),
)
ROW_TRIGGER = "headrace_capture_row"
# Notes in `dirt` that do not come from a trigger which failed.
SET_UP = "capture was set up"
FULL = "the buffer grew beyond max_buffer_mb"
# Up to here every failing statement leaves a note without looking for an earlier one, so that in
# ordinary cases transactions do not come to depend on one another through `dirt`.
UNCHECKED_DIRT_BYTES = 65536

SCHEMA = (
    sql.SQL("CREATE SCHEMA IF NOT EXISTS {schema}"),
    sql.SQL("""\
CREATE TABLE IF NOT EXISTS {schema}.sources (
    source oid PRIMARY KEY,
    definition text NOT NULL,
    unlogged boolean NOT NULL,
    max_buffer_bytes bigint NOT NULL,
    acknowledged_epoch bigint NOT NULL DEFAULT 0,
    acknowledged_at timestamptz,
    copy_due text,
    copy_due_xid xid8
)"""),
    # Without its last page a full disk could keep a note from being written.
    sql.SQL("""\
CREATE TABLE IF NOT EXISTS {schema}.dirt (
    source oid NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    reason text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (vacuum_truncate = off)"""),
    sql.SQL("CREATE INDEX IF NOT EXISTS dirt_source ON {schema}.dirt (source)"),
    sql.SQL("CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.alive (source oid PRIMARY KEY)"),
    sql.SQL("""\
CREATE OR REPLACE FUNCTION {schema}.note_dirt(dirty oid, problem text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, {schema}, pg_temp AS $headrace$
BEGIN
    BEGIN
        IF pg_relation_size('{schema}.dirt') >= {unchecked} THEN
            PERFORM FROM {schema}.dirt d WHERE d.source = dirty LIMIT 1 FOR KEY SHARE;
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    INSERT INTO {schema}.dirt (source, reason) VALUES (dirty, left(problem, 500));
EXCEPTION WHEN OTHERS THEN
    NULL;
END
$headrace$"""),
    sql.SQL("REVOKE ALL ON FUNCTION {schema}.note_dirt(oid, text) FROM PUBLIC"),
    sql.SQL("GRANT USAGE ON SCHEMA {schema} TO {role}"),
    sql.SQL("""\
GRANT SELECT, INSERT, UPDATE, DELETE
ON {schema}.sources, {schema}.dirt, {schema}.alive TO {role}"""),
)

FUNCTION = sql.SQL("""\
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp AS {quote}
#variable_conflict use_column
DECLARE
    problem text;
BEGIN
    BEGIN
        IF pg_table_size({buffer_name}) > {limit} THEN
            problem := {full};
        ELSIF TG_OP = 'INSERT' THEN
            {insert}
        ELSIF TG_OP = 'DELETE' THEN
            {delete}
        ELSE
            {delete}
            {insert}
        END IF;
    EXCEPTION WHEN OTHERS THEN
        problem := format('a change could not be recorded: %s (%s)', SQLERRM, SQLSTATE);
    END;
    IF problem IS NOT NULL THEN
        BEGIN
            PERFORM {schema}.note_dirt({oid}, problem);
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END IF;
    RETURN NULL;
END
{quote}""")


@dataclass(frozen=True)
class CaptureOptions:
    """How a source is captured.

    Beyond `max_buffer_mb` changes are no longer recorded: the source is copied anew instead.
    `unlogged` buffers cost less to write; a crash of the server then costs a copy.
    """

    max_buffer_mb: int = 1024
    unlogged: bool = False

    @property
    def max_buffer_bytes(self) -> int:
        return self.max_buffer_mb * 1024 * 1024


@dataclass(frozen=True)
class Roles:
    """Who takes part: `runtime` reads and clears buffers, `owner` owns the source.

    The owner of a partitioned table needs EXECUTE on our function: a row trigger is cloned to
    each new partition in the name of whoever creates it, and would otherwise stop them.
    """

    runtime: str
    owner: str


def buffer_name(oid: int) -> sql.Identifier:
    return sql.Identifier(CAPTURE_SCHEMA, f"buffer_{oid}")


def buffer_sql(oid: int) -> str:
    """The quoted name of a source's buffer."""
    return buffer_name(oid).as_string()


def function_name(oid: int) -> sql.Identifier:
    return sql.Identifier(CAPTURE_SCHEMA, f"capture_{oid}")


def trigger_names(table: SourceTable) -> tuple[str, ...]:
    if table.row_triggers:
        return (ROW_TRIGGER,)
    return tuple(name for name, _, _ in STATEMENT_TRIGGERS)


ALL_TRIGGERS = (*(name for name, _, _ in STATEMENT_TRIGGERS), ROW_TRIGGER)


def definition(table: SourceTable, *, unlogged: bool) -> str:
    """A fingerprint of what capture of a table consists of: not its name, limit and roles."""
    table = replace(table, schema="", name="")
    parts = [buffer_ddl(table, unlogged=unlogged), function_ddl(table, 0), *trigger_ddl(table)]
    text = "\n".join(part.as_string() for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()


def setup_sql(
    table: SourceTable,
    roles: Roles,
    options: CaptureOptions,
    *,
    with_schema: bool = True,
    obsolete: Sequence[str] = (),
) -> tuple[sql.Composed, ...]:
    """The statements that set up capture of a table from nothing or anew, for one transaction.

    They lock the table first: whoever has written to it has ended, so a copy made afterwards
    has all that an older buffer, dropped here, may have held. `obsolete` names triggers to drop.
    """
    oid, relation = table.oid, _relation(table)
    buffer, function = buffer_name(oid), function_name(oid)
    owner = (
        [_sql("GRANT EXECUTE ON FUNCTION {}() TO {}", function, sql.Identifier(roles.owner))]
        if table.row_triggers
        else []
    )
    return (
        *(schema_ddl(roles.runtime) if with_schema else ()),
        _sql("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", relation),
        *(_sql("DROP TRIGGER IF EXISTS {} ON {}", sql.Identifier(n), relation) for n in obsolete),
        _sql("DROP TABLE IF EXISTS {}", buffer),
        buffer_ddl(table, unlogged=options.unlogged),
        _sql("CREATE INDEX ON {} (_xid)", buffer),
        _sql("GRANT SELECT, DELETE, TRUNCATE ON {} TO {}", buffer, sql.Identifier(roles.runtime)),
        *limit_sql(table, options),
        _sql("REVOKE ALL ON FUNCTION {}() FROM PUBLIC", function),
        *owner,
        *trigger_ddl(table),
        sql.SQL("""\
INSERT INTO {schema}.sources (source, definition, unlogged, max_buffer_bytes)
VALUES ({oid}, {definition}, {unlogged}, {limit})
ON CONFLICT (source) DO UPDATE
SET definition = EXCLUDED.definition, unlogged = EXCLUDED.unlogged,
    max_buffer_bytes = EXCLUDED.max_buffer_bytes""").format(
            schema=_schema(),
            oid=sql.Literal(oid),
            definition=sql.Literal(definition(table, unlogged=options.unlogged)),
            unlogged=sql.Literal(options.unlogged),
            limit=sql.Literal(options.max_buffer_bytes),
        ),
        _sql(
            "INSERT INTO {}.dirt (source, reason) VALUES ({}, {})",
            _schema(),
            sql.Literal(oid),
            sql.Literal(SET_UP),
        ),
    )


def limit_sql(table: SourceTable, options: CaptureOptions) -> tuple[sql.Composed, ...]:
    """The statements that give the function of a captured table its limit."""
    return (function_ddl(table, options.max_buffer_bytes),)


def teardown_sql(oid: int, relation: sql.Identifier | None) -> tuple[sql.Composed, ...]:
    """The statements that take capture of a source away; `relation` is None if it was dropped."""
    triggers = ALL_TRIGGERS if relation is not None else ()
    return (
        *(_sql("DROP TRIGGER IF EXISTS {} ON {}", sql.Identifier(n), relation) for n in triggers),
        _sql("DROP FUNCTION IF EXISTS {}()", function_name(oid)),
        _sql("DROP TABLE IF EXISTS {}", buffer_name(oid)),
        *(
            _sql("DELETE FROM {}.{} WHERE source = {}", _schema(), sql.Identifier(name), oid)
            for name in ("sources", "dirt", "alive")
        ),
    )


def script(statements: Sequence[sql.Composable]) -> str:
    """The statements as one transaction for psql."""
    lines = ["BEGIN", *(statement.as_string() for statement in statements), "COMMIT"]
    return "".join(f"{line};\n" for line in lines)


def schema_ddl(role: str) -> tuple[sql.Composed, ...]:
    """The statements that make what all sources of a database share."""
    return tuple(
        statement.format(
            schema=_schema(),
            role=sql.Identifier(role),
            unchecked=sql.Literal(UNCHECKED_DIRT_BYTES),
        )
        for statement in SCHEMA
    )


def buffer_ddl(table: SourceTable, *, unlogged: bool) -> sql.Composed:
    # Rows live from one ingest to the next, so the buffer is vacuumed by count, not by share.
    columns = [
        sql.SQL(",\n    {} {}").format(sql.Identifier(column.physical), _buffer_type(column))
        for column in table.stored
    ]
    return sql.SQL("""\
CREATE {unlogged}TABLE {buffer} (
    _seq bigint GENERATED ALWAYS AS IDENTITY,
    _xid xid8 NOT NULL,
    _weight smallint NOT NULL{columns}
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)""").format(
        unlogged=sql.SQL("UNLOGGED " if unlogged else ""),
        buffer=buffer_name(table.oid),
        columns=sql.SQL("").join(columns),
    )


def function_ddl(table: SourceTable, limit: int) -> sql.Composed:
    insert, delete = (_recording(table, weight) for weight in (1, -1))
    text = insert.as_string() + delete.as_string()
    tag = "headrace"
    while f"${tag}$" in text:
        tag += "_"
    return FUNCTION.format(
        function=function_name(table.oid),
        schema=_schema(),
        quote=sql.SQL(f"${tag}$"),
        buffer_name=sql.Literal(buffer_sql(table.oid)),
        limit=sql.Literal(limit),
        full=sql.Literal(FULL),
        insert=insert,
        delete=delete,
        oid=sql.Literal(table.oid),
    )


def trigger_ddl(table: SourceTable) -> tuple[sql.Composed, ...]:
    relation, function = _relation(table), function_name(table.oid)
    if table.row_triggers:
        created = [
            _sql(
                "CREATE OR REPLACE TRIGGER {} AFTER INSERT OR UPDATE OR DELETE ON {}\n"
                "FOR EACH ROW EXECUTE FUNCTION {}()",
                sql.Identifier(ROW_TRIGGER),
                relation,
                function,
            )
        ]
    else:
        created = [
            _sql(
                "CREATE OR REPLACE TRIGGER {} AFTER {} ON {} REFERENCING {}\n"
                "FOR EACH STATEMENT EXECUTE FUNCTION {}()",
                sql.Identifier(name),
                sql.SQL(event),
                relation,
                sql.SQL(tables),
                function,
            )
            for name, event, tables in STATEMENT_TRIGGERS
        ]
    # ALWAYS: also in sessions with session_replication_role = replica.
    enabled = [
        _sql("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", relation, sql.Identifier(name))
        for name in trigger_names(table)
    ]
    return (*created, *enabled)


def _recording(table: SourceTable, weight: int) -> sql.Composed:
    """The INSERT into the buffer of the new (+1) or old (−1) images."""
    image = "new" if weight > 0 else "old"
    record = sql.SQL(image.upper() if table.row_triggers else "image")
    values = [
        sql.SQL("{}.{}{}").format(
            record,
            sql.Identifier(column.name),
            sql.SQL("::text" if column.type and column.type.kind == "enum" else ""),
        )
        for column in table.stored
    ]
    names = [sql.Identifier(column.physical) for column in table.stored]
    rows = (
        sql.SQL("VALUES ({})")
        if table.row_triggers
        else sql.SQL("SELECT {} FROM headrace_" + image + " AS image")
    )
    first = [sql.SQL("pg_current_xact_id()"), sql.Literal(weight)]
    return sql.SQL("INSERT INTO {} ({}) {};").format(
        buffer_name(table.oid),
        sql.SQL(", ").join([sql.Identifier("_xid"), sql.Identifier("_weight"), *names]),
        rows.format(sql.SQL(", ").join([*first, *values])),
    )


def _buffer_type(column: SourceColumn) -> sql.SQL:
    assert column.type is not None
    return sql.SQL(BUFFER_TYPES.get(column.type.kind, column.type.kind))


def _relation(table: SourceTable) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def _schema() -> sql.Identifier:
    return sql.Identifier(CAPTURE_SCHEMA)


def _sql(template: str, *parts: object) -> sql.Composed:
    return sql.SQL(template).format(*parts)
