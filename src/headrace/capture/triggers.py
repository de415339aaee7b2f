"""The DDL of capture by triggers, as data: the same DDL is run here and shown to a DBA.

A trigger never fails the user's statement: if it cannot record a change, it leaves a note in
`recopy_reasons`, which makes the next ingest copy the source again. A trigger never uses NOTIFY,
after which PostgreSQL refuses PREPARE TRANSACTION. TRUNCATE needs no trigger: it changes
`SourceTable.storage`.

Statement-level triggers record a statement's rows at once, but a session that applies rows without
statements, such as a subscription, fires none of them. Then a row-level trigger leaves a note.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache

from psycopg import sql

from headrace.capture.layout import (
    FULL,
    UNSEEN,
    buffer_name,
    buffer_sql,
    expected_mark,
    function_name,
)
from headrace.source.introspect import CAPTURE_SCHEMA
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import Type

# Buffers have no columns of enum and domain types: a buffer must not block DROP TYPE.
STATEMENT_TRIGGERS = (
    ("headrace_capture_insert", "INSERT", "NEW TABLE AS headrace_new"),
    ("headrace_capture_update", "UPDATE", "OLD TABLE AS headrace_old NEW TABLE AS headrace_new"),
    ("headrace_capture_delete", "DELETE", "OLD TABLE AS headrace_old"),
)
ROW_TRIGGER = "headrace_capture_row"
# Fires in sessions with session_replication_role = replica alone, beside the statement-level ones.
REPLICA_TRIGGER = "headrace_capture_replica"
# All that PL/pgSQL declares in the trigger function, and the function itself.
VARIABLES = frozenset(
    f"tg_{name}"
    for name in (
        *("name", "when", "level", "op", "relid", "relname", "table_name", "table_schema"),
        *("nargs", "argv", "event", "tag"),
    )
) | {"new", "old", "found", "sqlstate", "sqlerrm", "problem"}
FUNCTION = sql.SQL("""\
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp{settings} AS {quote}
#variable_conflict use_column
DECLARE
    problem text;
BEGIN
    BEGIN{watching}
        -- pg_table_size would ask the file system for a dozen more files.
        IF (
            SELECT pg_relation_size(c.oid)
                + coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) > {limit}
            FROM pg_class c WHERE c.oid = {buffer_name}::regclass
        ) THEN
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
            PERFORM {schema}.note_recopy_reason({oid}, problem);
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END IF;
    RETURN NULL;
END
{quote}""")
# A row that a statement of a client or of another trigger writes is recorded by statement triggers.
WATCHING = sql.SQL("""
        IF TG_LEVEL = 'ROW' THEN
            IF current_query() IS NULL AND pg_trigger_depth() = 1 THEN
                PERFORM {schema}.note_recopy_reason({oid}, {unseen});
            END IF;
            RETURN NULL;
        END IF;""")


def trigger_names(table: SourceTable) -> tuple[str, ...]:
    if table.row_triggers:
        return (ROW_TRIGGER,)
    return (*(name for name, _, _ in STATEMENT_TRIGGERS), REPLICA_TRIGGER)


ALL_TRIGGERS = (*(name for name, _, _ in STATEMENT_TRIGGERS), ROW_TRIGGER, REPLICA_TRIGGER)


@lru_cache(maxsize=1024)
def definition(table: SourceTable, *, unlogged: bool) -> str:
    """Return a fingerprint of the DDL of a table's capture, without its name, limit and roles.

    The result is cached: every cut needs it, and composing the DDL takes milliseconds.
    """
    table = replace(table, schema="", name="")
    parts = [buffer_ddl(table, unlogged=unlogged), function_ddl(table, 0), *trigger_ddl(table)]
    text = "\n".join(part.as_string() for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=1024)
def function_mark(table: SourceTable, limit: int) -> str:
    """Return the value of `FUNCTION_MARK` for the trigger function of a table."""
    settings = ("array_nulls=on",) if _has_enum_arrays(table) else ()
    return expected_mark(function_ddl(table, limit), "trigger", settings, is_definer=True)


def buffer_ddl(table: SourceTable, *, unlogged: bool) -> sql.Composed:
    # Rows live from one ingest to the next, so the buffer is vacuumed by count, not by share.
    columns = [
        sql.SQL(",\n    {} {}").format(
            sql.Identifier(column.physical), _buffer_type(_stored(column))
        )
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
    schema, oid = sql.Identifier(CAPTURE_SCHEMA), sql.Literal(table.oid)
    watching = WATCHING.format(schema=schema, oid=oid, unseen=sql.Literal(UNSEEN))
    return FUNCTION.format(
        function=function_name(table.oid),
        schema=schema,
        watching=sql.SQL("") if table.row_triggers else watching,
        settings=sql.SQL(" SET array_nulls = on" if _has_enum_arrays(table) else ""),
        quote=sql.SQL(f"${tag}$"),
        buffer_name=sql.Literal(buffer_sql(table.oid)),
        limit=sql.Literal(limit),
        full=sql.Literal(FULL),
        insert=insert,
        delete=delete,
        oid=oid,
    )


def trigger_ddl(table: SourceTable) -> tuple[sql.Composed, ...]:
    relation, function = _relation(table), function_name(table.oid)
    by_row = _sql(
        "CREATE OR REPLACE TRIGGER {} AFTER INSERT OR UPDATE OR DELETE ON {}\n"
        "FOR EACH ROW EXECUTE FUNCTION {}()",
        sql.Identifier(ROW_TRIGGER if table.row_triggers else REPLICA_TRIGGER),
        relation,
        function,
    )
    created = [by_row]
    if not table.row_triggers:
        created += [
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
        _sql(
            "ALTER TABLE {} ENABLE {} TRIGGER {}",
            relation,
            sql.SQL("REPLICA" if name == REPLICA_TRIGGER else "ALWAYS"),
            sql.Identifier(name),
        )
        for name in trigger_names(table)
    ]
    return (*created, *enabled)


def _recording(table: SourceTable, weight: int) -> sql.Composed:
    """Return the INSERT into the buffer of the new (+1) or old (−1) images."""
    image = "new" if weight > 0 else "old"
    alias = "image"
    while any(column.name == alias for column in table.stored):
        alias += "_"
    record = sql.SQL(image.upper()) if table.row_triggers else sql.Identifier(alias)
    values = [
        _as_buffered(_stored(column), _column_of(record, column.name, by_row=table.row_triggers))
        for column in table.stored
    ]
    names = [sql.Identifier(column.physical) for column in table.stored]
    first = [sql.SQL("pg_current_xact_id()"), sql.Literal(weight)]
    selected = sql.SQL(", ").join([*first, *values])
    if table.row_triggers:
        rows = sql.SQL("VALUES ({})").format(selected)
    else:
        images = sql.Identifier(f"headrace_{image}")
        rows = sql.SQL("SELECT {} FROM {} AS {}").format(selected, images, record)
    return sql.SQL("INSERT INTO {} ({}) {};").format(
        buffer_name(table.oid),
        sql.SQL(", ").join([sql.Identifier("_xid"), sql.Identifier("_weight"), *names]),
        rows,
    )


def _column_of(record: sql.Composable, name: str, *, by_row: bool) -> sql.Composed:
    """Return the reference to a column of an image, an error once the column has another name.

    Of a transition table a column that is missing must not be qualified: PostgreSQL would read
    `image.to_jsonb` as a call of that function for the whole row, and with it casts of its owner.
    Unqualified, a missing column is an error, unless it has the name of a variable; there is no
    function of such a name.
    """
    if by_row or name in VARIABLES:
        return sql.SQL("{}.{}").format(record, sql.Identifier(name))
    return sql.Composed([sql.Identifier(name)])


def _has_enum_arrays(table: SourceTable) -> bool:
    return any(_stored(column).element and _stored(column).is_of_users for column in table.stored)


def _stored(column: SourceColumn) -> Type:
    assert column.type is not None
    return column.type


def _as_buffered(type_: Type, value: sql.Composed) -> sql.Composed:
    """Return the expression for a column's value in the buffer.

    The trigger function runs with the rights of the setup role, in the session of a writer: it must
    call no function, and name no type, that the owner of the table could have made. This holds also
    if the column has got another type since, whose cast the buffer's INSERT would apply by itself.
    """
    if type_.is_of_users:
        return sql.SQL(type_.read).format(column=value)
    # Polymorphic functions allow no casts: the statement is refused if the column, below its
    # domains, has not exactly this type. PostgreSQL computes the condition while planning.
    return sql.SQL(
        "CASE WHEN pg_catalog.array_eq(ARRAY[{value}, NULL], NULL::pg_catalog.{type}[]) IS NULL"
        " THEN {value} END"
    ).format(value=value, type=sql.Identifier((type_.element or type_).row.catalog_name or ""))


def _buffer_type(type_: Type) -> sql.Composable:
    if type_.element is not None:
        return sql.SQL("{}[]").format(_buffer_type(type_.element))
    return sql.SQL(type_.row.buffer or type_.kind)


def _relation(table: SourceTable) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def _sql(template: str, *parts: object) -> sql.Composed:
    return sql.SQL(template).format(*parts)
