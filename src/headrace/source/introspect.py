"""Source tables as the system catalogs describe them, read in one query of one snapshot.

Only MVCC reads of the catalogs are used, because a cut needs the state of its snapshot: functions
such as pg_relation_filenode or pg_partition_tree return the newest state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import Connection, Cursor, sql

from headrace.errors import UserError
from headrace.source.faults import translated
from headrace.source.rights import FIRST_USER_OID, ask_rights, read_rights
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import from_postgres

CAPTURE_SCHEMA = "headrace_capture"
# What `note_recopy_reason` and the triggers call.
NEEDED_FUNCTIONS = ("pg_current_xact_id", "clock_timestamp", "left", "format", "pg_relation_size")

# `tree` has a table and all that inherit from it, partitions or not. `ordered` is true where a
# collation sorts by bytes; in UTF-8 that is the order of code points, which is Spark's. `folds` is
# true where upper and lower change ASCII letters only.
INSPECT = sql.SQL("""
WITH RECURSIVE tree AS (
    SELECT c.oid AS root, c.oid FROM pg_class c WHERE c.oid = ANY (%(oids)s::oid[])
    UNION ALL
    SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
), place AS (
    SELECT encoding = pg_char_to_encoding('UTF8') AS unicode,
        encoding = pg_char_to_encoding('SQL_ASCII') AS untyped,
        datlocprovider = 'b' OR datlocprovider = 'c' AND datcollate ~* '^(C|POSIX)(\\.utf-?8)?$'
            AS ordered,
        datlocprovider = 'c' AND datctype ~* '^(C|POSIX)$' AS folds
    FROM pg_database WHERE datname = current_database()
), bases AS (
    SELECT a.attrelid, a.attnum, a.atttypid AS oid, a.atttypmod AS typmod
    FROM pg_attribute a
    WHERE a.attrelid = ANY (%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attrelid, b.attnum, t.typbasetype, t.typtypmod
    FROM bases b JOIN pg_type t ON t.oid = b.oid
    WHERE t.typtype = 'd'
), columns AS (
    SELECT a.attrelid, a.attnum AS number, a.attname AS name,
        format_type(a.atttypid, a.atttypmod) AS declared,
        t.oid::bigint AS oid, b.typmod, e.oid::bigint AS element,
        coalesce(e.typtype, t.typtype) = 'e' AS is_enum,
        quote_ident(tn.nspname) || '.' || quote_ident(coalesce(e.typname, t.typname)) AS type_name,
        a.attnotnull AND NOT EXISTS (
            SELECT FROM pg_constraint k
            WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND NOT k.convalidated
                AND k.conkey = ARRAY[a.attnum]
        ) AS not_null,
        p.unicode AND CASE l.collprovider
            WHEN 'd' THEN p.ordered
            WHEN 'b' THEN true
            WHEN 'c' THEN l.collcollate ~* '^(C|POSIX)(\\.utf-?8)?$'
            ELSE a.attcollation = 0
        END AS ordered,
        p.unicode AND CASE l.collprovider
            WHEN 'd' THEN p.folds
            WHEN 'c' THEN l.collctype ~* '^(C|POSIX)$'
            ELSE false
        END AS folds,
        coalesce(l.collisdeterministic, true) AND a.attgenerated <> 'v'
            AND NOT (p.untyped AND a.attcollation <> 0) AS exact
    FROM place p, pg_attribute a
    JOIN bases b USING (attrelid, attnum)
    JOIN pg_type t ON t.oid = b.oid AND t.typtype <> 'd'
    LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
    JOIN pg_namespace tn ON tn.oid = coalesce(e.typnamespace, t.typnamespace)
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
)
SELECT c.oid, n.nspname, c.relname,
    (
        SELECT coalesce(jsonb_agg(to_jsonb(s) - 'attrelid' ORDER BY s.number), '[]')
        FROM columns s WHERE s.attrelid = c.oid
    ) AS columns,
    ARRAY(
        SELECT to_jsonb(i.indkey[0 : i.indnkeyatts - 1])
        FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
            AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL
            AND (i.indnullsnotdistinct OR NOT EXISTS (
                SELECT FROM columns s
                WHERE s.attrelid = c.oid AND NOT s.not_null
                    AND s.number = ANY (i.indkey[0 : i.indnkeyatts - 1])
            ))
        ORDER BY i.indisprimary DESC, i.indexrelid
    ) AS keys,
    c.relkind = 'p'
        OR EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = c.oid)
        OR EXISTS (
            SELECT FROM pg_subscription_rel r JOIN tree t ON r.srrelid = t.oid
            WHERE t.root = c.oid
        ) AS row_triggers,
    jsonb_build_object(
        -- A partition that was detached and attached again has left another xmin.
        'files', (
            SELECT jsonb_object_agg(f.oid::text, concat_ws(' ', f.relfilenode, (
                SELECT string_agg(i.xmin::text, ' ' ORDER BY i.inhparent)
                FROM pg_inherits i WHERE i.inhrelid = f.oid AND f.oid <> c.oid
            )))
            FROM tree t JOIN pg_class f ON f.oid = t.oid WHERE t.root = c.oid
        ),
        'triggers', (
            SELECT coalesce(jsonb_object_agg(g.oid::text, g.xmin::text), '{{}}')
            FROM tree t JOIN pg_trigger g ON g.tgrelid = t.oid
            JOIN pg_proc f ON f.oid = g.tgfoid
            JOIN pg_namespace fn ON fn.oid = f.pronamespace
            WHERE t.root = c.oid AND fn.nspname = {schema}
        ),
        -- What a trigger needs to leave a mark when it cannot record a change. A right that was
        -- taken away and given back has left another xmin.
        'marks', (
            SELECT jsonb_build_object('schemas', (
                SELECT jsonb_object_agg(m.nspname, m.xmin::text) FROM pg_namespace m
                WHERE m.nspname IN ({schema}, 'pg_catalog')
            ), 'notes', (
                SELECT d.xmin::text FROM pg_class d JOIN pg_namespace m ON m.oid = d.relnamespace
                WHERE m.nspname = {schema} AND d.relname = 'recopy_reasons'
            ), 'functions', (
                SELECT jsonb_object_agg(f.oid::text, f.xmin::text)
                FROM pg_proc f JOIN pg_namespace m ON m.oid = f.pronamespace
                WHERE m.nspname = {schema} AND f.proname = 'note_recopy_reason'
                    OR m.nspname = 'pg_catalog' AND f.proname IN ({needed})
            ))
        ),
        'function', (
            SELECT jsonb_build_object(
                'xmin', f.xmin::text,
                'text', md5(f.prosrc),
                'rights', concat_ws(' ', f.proowner, f.prosecdef, f.proacl)
            )
            FROM pg_proc f JOIN pg_namespace m ON m.oid = f.pronamespace
            WHERE m.nspname = {schema} AND f.proname = 'capture_' || c.oid
        ),
        -- Columns that had other names, or a parent, for a while are as before, but for the xmin.
        'columns', (
            SELECT coalesce(jsonb_object_agg(a.attnum::text, a.xmin::text || ' ' || md5(concat_ws(
                ' ', a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attnotnull, a.atthasdef,
                a.atthasmissing, a.attidentity, a.attgenerated, a.attislocal, a.attinhcount,
                a.attstattarget, a.attstorage, a.attcompression, a.attacl, a.attoptions
            ))), '{{}}')
            FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        ),
        'labels', (
            SELECT coalesce(jsonb_object_agg(e.oid::text, e.enumlabel), '{{}}')
            FROM columns s JOIN pg_enum e ON e.enumtypid = coalesce(s.element, s.oid)
            WHERE s.attrelid = c.oid
        ),
        -- A label that was renamed and has its name back has left another xmin.
        'label_versions', (
            SELECT coalesce(jsonb_object_agg(e.oid::text, e.xmin::text), '{{}}')
            FROM columns s JOIN pg_enum e ON e.enumtypid = coalesce(s.element, s.oid)
            WHERE s.attrelid = c.oid
        )
    )::text AS storage
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY (%(oids)s::oid[])
""").format(
    schema=sql.Literal(CAPTURE_SCHEMA),
    needed=sql.SQL(", ").join(map(sql.Literal, NEEDED_FUNCTIONS)),
)

# The first table of a name on the search path, or the one in its own schema.
RESOLVE = """
SELECT DISTINCT ON (wanted.schema, wanted.name) wanted.schema, wanted.name,
    c.oid, n.nspname, c.relkind, c.relpersistence,
    EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS wanted (schema, name)
JOIN unnest(%(path)s::text[]) WITH ORDINALITY AS s (name, position)
    ON wanted.schema IS NULL OR position = 1
JOIN pg_namespace n ON n.nspname = coalesce(wanted.schema, s.name)
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
ORDER BY wanted.schema, wanted.name, s.position
"""

KINDS_REFUSED = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}


def inspect(connection: Connection[Any], oids: Iterable[int]) -> dict[int, SourceTable]:
    """Return the tables of `oids` in the connection's snapshot, without dropped tables."""
    requested = tuple(oids)
    if not requested:
        return {}
    with translated():
        return read_tables(ask_tables(connection, requested))


def ask_tables(connection: Connection[Any], oids: Iterable[int]) -> Cursor[Any]:
    """Send the query of `inspect`; in a pipeline the answer is read later."""
    return connection.execute(INSPECT, {"oids": sorted(oids)})


def read_tables(answer: Cursor[Any]) -> dict[int, SourceTable]:
    """Return the tables of the answer to `ask_tables`."""
    return {
        oid: SourceTable(
            oid=oid,
            schema=schema,
            name=name,
            columns=tuple(_column(fields) for fields in columns),
            keys=tuple(tuple(key) for key in keys),
            row_triggers=row_triggers,
            storage=storage,
        )
        for oid, schema, name, columns, keys, row_triggers, storage in answer
    }


def find_table(
    connection: Connection[Any],
    schema: str | None,
    name: str,
    search_path: Sequence[str] = ("public",),
) -> SourceTable:
    """Return the table that a name resolves to: see `find_tables`."""
    return find_tables(connection, [(schema, name)], search_path)[schema, name]


def find_tables(
    connection: Connection[Any],
    names: Sequence[tuple[str | None, str]],
    search_path: Sequence[str] = ("public",),
) -> dict[tuple[str | None, str], SourceTable]:
    """Return the tables that names resolve to, if all can be captured and read.

    Raises `unknown-table`, `unsupported-source`, `permission-denied`, `row-security` or
    `untrusted-object`.
    """
    if not names:
        return {}
    oids = _resolve(connection, names, search_path)
    with translated():
        problems = read_rights(ask_rights(connection, oids.values()))
    for oid in oids.values():
        if oid in problems:
            raise problems[oid]
    tables = inspect(connection, oids.values())
    for (schema, name), oid in oids.items():
        if oid not in tables:
            qualified = _qualified(schema, name)
            raise UserError("unknown-table", f'table "{qualified}" was dropped concurrently')
    return {name: tables[oid] for name, oid in oids.items()}


def _resolve(
    connection: Connection[Any],
    names: Sequence[tuple[str | None, str]],
    search_path: Sequence[str],
) -> dict[tuple[str | None, str], int]:
    """Return the oids of the tables; raise UserError if one cannot be captured."""
    # PostgreSQL searches pg_catalog first unless the path lists it.
    implied = () if "pg_catalog" in search_path else ("pg_catalog",)
    parameters = {
        "schemas": [schema for schema, _ in names],
        "names": [name for _, name in names],
        "path": [*implied, *search_path],
    }
    with translated():
        rows = connection.execute(RESOLVE, parameters).fetchall()
    resolved = {(schema, name): rest for schema, name, *rest in rows}
    oids: dict[tuple[str | None, str], int] = {}
    for schema, name in names:
        if (schema, name) not in resolved:
            where = schema or ", ".join(search_path)
            qualified = _qualified(schema, name)
            raise UserError(
                "unknown-table", f'table "{qualified}" does not exist in schema {where}'
            )
        oid, place, kind, persistence, parent = resolved[schema, name]
        reason = None
        if oid < FIRST_USER_OID or place in ("pg_catalog", "information_schema"):
            reason = "is a system table"
        elif place == "headrace" or place.startswith("headrace_"):
            reason = "belongs to Headrace itself"
        elif kind in KINDS_REFUSED:
            reason = f"is {KINDS_REFUSED[kind]}"
        elif persistence == "t":
            reason = "is a temporary table"
        elif kind == "r" and parent:
            reason = "has tables that inherit from it"
        if reason is not None:
            hint = "Only ordinary and partitioned tables can be captured; name the table itself."
            if kind == "r" and parent:
                hint = "Partition the table instead, or read the inheriting tables with UNION ALL."
            raise UserError("unsupported-source", f"{place}.{name} {reason}", hint=hint)
        oids[schema, name] = oid
    return oids


def _qualified(schema: str | None, name: str) -> str:
    return name if schema is None else f"{schema}.{name}"


def _column(fields: dict[str, Any]) -> SourceColumn:
    type_ = from_postgres(
        fields["oid"],
        fields["typmod"],
        enum=fields["type_name"] if fields["is_enum"] else None,
        ordered=fields["ordered"],
        folds=fields["folds"],
        element=fields["element"],
    )
    return SourceColumn(
        number=fields["number"],
        name=fields["name"],
        declared=fields["declared"],
        type=type_ if fields["exact"] else None,
        not_null=fields["not_null"],
    )
