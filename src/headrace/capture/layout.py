"""The objects of capture in the source database: one schema, a few tables that sources share.

In schema `headrace_capture`:

    sources         one row a source: what was set up, what is acknowledged, whether a copy is due
    recopy_reasons  one row for each time a trigger could not record a change
    alive           unlogged, one row a source that was copied: a crash of the server empties it
    announced       one row a source, also of one that is read from the WAL: its latest epoch
    buffer_<oid>    the changes of one source: −1 with the old image, +1 with the new
    capture_<oid>   the trigger function of one source

A note in `recopy_reasons` may be left out only if an earlier note is certain to exist when the
user's transaction ends. Hence FOR KEY SHARE: the lock keeps the earlier note from being deleted
until then, and fails or finds nothing if the note is deleted already.
"""

from __future__ import annotations

import hashlib

from psycopg import sql

from headrace.source.introspect import CAPTURE_SCHEMA

# Notes in `recopy_reasons` that do not come from a trigger which failed.
SET_UP = "capture was set up"
FULL = "the buffer grew beyond max_buffer_mb"
EMPTIED = "a crash of the server emptied an unlogged table"
UNSEEN = "rows were written without statement-level triggers, as by a subscription"
# Up to this size every failing statement leaves a note without looking for an earlier one, so that
# transactions usually do not wait for each other through `recopy_reasons`.
UNCHECKED_NOTES_BYTES = 65536

SCHEMA = (
    sql.SQL("CREATE SCHEMA IF NOT EXISTS {schema}"),
    # An owner that has lost its rights gives them back to itself.
    sql.SQL("GRANT ALL ON SCHEMA {schema} TO CURRENT_USER"),
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
CREATE TABLE IF NOT EXISTS {schema}.recopy_reasons (
    source oid NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    reason text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (vacuum_truncate = off)"""),
    # Check first whether the index exists: CREATE INDEX would block writers of notes.
    sql.SQL("""\
DO $headrace$
BEGIN
    IF pg_catalog.to_regclass('{schema}.recopy_reasons_source') IS NULL THEN
        CREATE INDEX IF NOT EXISTS recopy_reasons_source ON {schema}.recopy_reasons (source);
    END IF;
END
$headrace$"""),
    sql.SQL("CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.alive (source oid PRIMARY KEY)"),
    sql.SQL("""\
CREATE TABLE IF NOT EXISTS {schema}.announced (source oid PRIMARY KEY, epoch bigint NOT NULL)"""),
    sql.SQL("""\
CREATE OR REPLACE FUNCTION {schema}.note_recopy_reason(concerned oid, problem text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $headrace$
BEGIN
    BEGIN
        IF pg_relation_size('{schema}.recopy_reasons') >= {unchecked} THEN
            PERFORM FROM {schema}.recopy_reasons r WHERE r.source = concerned LIMIT 1 FOR KEY SHARE;
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    INSERT INTO {schema}.recopy_reasons (source, reason) VALUES (concerned, left(problem, 500));
EXCEPTION WHEN OTHERS THEN
    NULL;
END
$headrace$"""),
    sql.SQL("REVOKE ALL ON FUNCTION {schema}.note_recopy_reason(oid, text) FROM PUBLIC"),
    sql.SQL("GRANT EXECUTE ON FUNCTION {schema}.note_recopy_reason(oid, text) TO CURRENT_USER"),
    sql.SQL("GRANT USAGE ON SCHEMA {schema} TO {role}"),
    sql.SQL("""\
GRANT SELECT, INSERT, UPDATE, DELETE
ON {schema}.sources, {schema}.recopy_reasons, {schema}.alive, {schema}.announced
TO CURRENT_USER, {role}"""),
)


# The definition of a function `f` of pg_proc: all but its name, arguments, owner and rights. Saved
# scripts may have other line ends.
FUNCTION_MARK = sql.SQL("""
concat_ws(' ',
    (SELECT l.lanname FROM pg_language l WHERE l.oid = {f}.prolang),
    {f}.prorettype::regtype, {f}.prokind, {f}.prosecdef, {f}.proisstrict, {f}.proretset,
    {f}.provolatile, {f}.proconfig,
    encode(sha256(convert_to(replace({f}.prosrc, chr(13), ''), 'UTF8')), 'hex')
)""")


def expected_mark(
    ddl: sql.Composed, result: str, settings: tuple[str, ...] = (), *, is_definer: bool
) -> str:
    """Return the value of `FUNCTION_MARK` for a function created by a statement."""
    _, rest = ddl.as_string().split(" AS $", 1)
    tag, rest = rest.split("$", 1)
    body = rest[: rest.rindex(f"${tag}$")].replace("\r", "")
    digest = hashlib.sha256(body.encode()).hexdigest()
    definer = "t" if is_definer else "f"
    options = ",".join(('"search_path=pg_catalog, pg_temp"', *settings))
    return f"plpgsql {result} f {definer} f f v {{{options}}} {digest}"


def buffer_name(oid: int) -> sql.Identifier:
    return sql.Identifier(CAPTURE_SCHEMA, f"buffer_{oid}")


def buffer_sql(oid: int) -> str:
    """Return the quoted name of a source's buffer."""
    return buffer_name(oid).as_string()


def function_name(oid: int) -> sql.Identifier:
    return sql.Identifier(CAPTURE_SCHEMA, f"capture_{oid}")


def schema_ddl(role: str) -> tuple[sql.Composed, ...]:
    """Return the statements that create the objects that all sources of a database share."""
    return tuple(
        statement.format(
            schema=sql.Identifier(CAPTURE_SCHEMA),
            role=sql.Identifier(role),
            unchecked=sql.Literal(UNCHECKED_NOTES_BYTES),
        )
        for statement in SCHEMA
    )


# The value of `FUNCTION_MARK` for `note_recopy_reason`.
NOTE_MARK = expected_mark(
    next(statement for statement in schema_ddl("") if "FUNCTION" in statement.as_string()),
    "void",
    is_definer=False,
)
