"""Users' views: their text, and whether their owners may read what the views read.

Headrace reads the tables below a view with its own rights. PostgreSQL would check those of the
view's owner, or with `security_invoker` those of whoever reads the view, so the same is checked
here. Otherwise the owner of a view could have Headrace show what only Headrace may read.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors, sql

from headrace.errors import Transient, UserError
from headrace.source.faults import translated
from headrace.source.rights import FIRST_USER_OID

# Sessions have pg_catalog as their search path: every other name is printed with its schema.
VIEWS = """
SELECT n.nspname, c.relname, rtrim(pg_get_viewdef(c.oid), ';'), ARRAY(
    SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
)
FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
WHERE c.relkind = 'v' AND c.oid >= %(first)s
"""

# The same without the text of views that are locked: to print one, PostgreSQL opens the view and
# the tables and views in its query, and waits for whoever holds or awaits their strongest lock.
LOOK = """
WITH locked AS MATERIALIZED (
    SELECT l.relation FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE d.datname = current_database() AND l.locktype = 'relation'
        AND l.mode = 'AccessExclusiveLock' AND l.pid <> pg_backend_pid()
)
SELECT n.nspname, c.relname, CASE WHEN c.oid NOT IN (SELECT relation FROM locked)
    AND NOT EXISTS (
        SELECT FROM pg_rewrite r
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass
        JOIN locked l ON l.relation = d.refobjid
        WHERE r.ev_class = c.oid
    ) THEN rtrim(pg_get_viewdef(c.oid), ';') END, ARRAY(
    SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
)
FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
WHERE c.relkind = 'v' AND c.oid >= %(first)s
"""
# For locks that are taken while views are read, or on tables that only give the query a row type.
LOCK_MILLISECONDS = 50
MOST_WAITS = 5


@dataclass(frozen=True)
class FoundView:
    """The text and the columns of a view."""

    text: str
    columns: tuple[str, ...]


def find_views(
    connection: Connection[Any], names: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], FoundView]:
    """Return the views of users among the names (schema and name), by name."""
    with translated():
        rows = connection.execute(VIEWS, _parameters(names)).fetchall()
    return {(schema, name): FoundView(text, tuple(columns)) for schema, name, text, columns in rows}


def look_at_views(
    connection: Connection[Any], names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], FoundView | None]:
    """Return the views as `find_views` does, hardly waiting: None for those that are locked."""
    views = _look(connection, names)
    if views is not None:
        return views
    looked_at: dict[tuple[str, str], FoundView | None] = dict.fromkeys(names)
    waits = 0
    for name in random.sample(tuple(names), len(names)):
        views = _look(connection, [name])
        if views is not None:
            del looked_at[name]
            looked_at |= views
            continue
        waits += 1
        if waits == MOST_WAITS:
            break
    return looked_at


def _look(
    connection: Connection[Any], names: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], FoundView | None] | None:
    """Return the views if none of them had to be waited for, else None."""
    wait = sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_MILLISECONDS)
    try:
        with translated(), connection.transaction():
            connection.execute(wait)
            rows = connection.execute(LOOK, _parameters(names)).fetchall()
    except Transient as error:
        if not isinstance(error.__cause__, errors.LockNotAvailable):
            raise
        return None
    return {
        (schema, name): None if text is None else FoundView(text, tuple(columns))
        for schema, name, text, columns in rows
    }


def _parameters(names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    requested = sorted(names)
    return {
        "schemas": [schema for schema, _ in requested],
        "names": [name for _, name in requested],
        "first": FIRST_USER_OID,
    }


# A view depends on the columns that it reads, or on the whole table if it reads none. Whole rows
# are a dependency on column number 0 only; then every column has to be readable. The invoker reads
# the named views that no other view reads. A dropped role has no rights.
FORBIDDEN = """
WITH RECURSIVE views (schema, name, oid) AS (
    SELECT wanted.schema, wanted.name, c.oid
    FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS wanted (schema, name)
    JOIN pg_namespace n ON n.nspname = wanted.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
    WHERE c.relkind = 'v' AND c.oid >= %(first)s
    UNION
    SELECT v.schema, v.name, c.oid
    FROM views v
    JOIN pg_rewrite r ON r.ev_class = v.oid
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_class'::regclass
    JOIN pg_class c ON c.oid = d.refobjid
    WHERE c.relkind = 'v' AND c.oid >= %(first)s
), reads AS (
    SELECT v.schema, v.name, v.oid AS view, c.oid AS relation, d.refobjsubid::smallint AS number,
        c.relowner, c.relforcerowsecurity, c.relrowsecurity,
        r.ev_action::text LIKE '%%:varattno 0 %%' AS whole,
        CASE WHEN EXISTS (
            SELECT FROM pg_options_to_table(o.reloptions) AS option
            WHERE option_name = 'security_invoker' AND option_value::boolean
        ) THEN to_regrole(quote_ident(%(invoker)s))::oid ELSE o.relowner END AS role
    FROM views v
    JOIN pg_class o ON o.oid = v.oid
    JOIN pg_rewrite r ON r.ev_class = v.oid
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> v.oid
    JOIN pg_class c ON c.oid = d.refobjid
    UNION ALL
    SELECT n.nspname, c.relname, c.oid, c.oid, 0::smallint, c.relowner, false, false, false,
        to_regrole(quote_ident(%(invoker)s))::oid
    FROM views v
    JOIN pg_class c ON c.oid = v.oid
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = v.schema AND c.relname = v.name
    WHERE NOT EXISTS (
        SELECT FROM views o WHERE o.oid = v.oid AND (o.schema, o.name) <> (v.schema, v.name)
    )
), judged AS (
    SELECT x.*, coalesce(r.rolname, %(invoker)s) AS called,
        coalesce(CASE
            WHEN x.view = x.relation THEN has_any_column_privilege(x.role, x.relation, 'SELECT')
                AND has_schema_privilege(x.role, x.schema, 'USAGE')
            WHEN x.whole THEN NOT EXISTS (
                SELECT FROM pg_attribute a
                WHERE a.attrelid = x.relation AND a.attnum > 0 AND NOT a.attisdropped
                    AND has_column_privilege(x.role, x.relation, a.attnum, 'SELECT') IS NOT TRUE
            )
            WHEN x.number = 0 THEN has_any_column_privilege(x.role, x.relation, 'SELECT')
            ELSE has_column_privilege(x.role, x.relation, x.number, 'SELECT')
        END, false) AS readable,
        x.relrowsecurity AND NOT (
            r.rolsuper OR r.rolbypassrls
            OR pg_has_role(x.role, x.relowner, 'USAGE') AND NOT x.relforcerowsecurity
        ) AS secured
    FROM reads x LEFT JOIN pg_roles r ON r.oid = x.role
)
SELECT DISTINCT ON (schema, name)
    schema, name, view::regclass::text, relation::regclass::text, called, readable
FROM judged WHERE NOT readable OR secured
ORDER BY schema, name, readable
"""


def forbidden_views(
    connection: Connection[Any], names: Iterable[tuple[str, str]], invoker: str | None = None
) -> dict[tuple[str, str], UserError]:
    """Return the views, by schema and name, whose owner lacks a right, each with the error.

    The `invoker` is the role that reads views with `security_invoker`: the current role if None.
    """
    requested = sorted(names)
    if not requested:
        return {}
    parameters = {**_parameters(requested), "invoker": invoker or connection.info.user}
    with translated():
        rows = connection.execute(FORBIDDEN, parameters).fetchall()
    return {(schema, name): _problem(*problem) for schema, name, *problem in rows}


def _problem(view: str, relation: str, role: str, readable: bool) -> UserError:
    quoted = sql.Identifier(role).as_string()
    if readable:
        return UserError(
            "row-security",
            f"row level security would hide rows of {relation} from role {role}, as whom view"
            f" {view} reads it",
            hint=f"Have a superuser run: ALTER ROLE {quoted} BYPASSRLS; or read the table itself.",
        )
    if relation == view:
        return UserError(
            "permission-denied",
            f"role {role} may not read view {view}",
            hint=f"Have its owner grant {quoted} USAGE on its schema and SELECT on {view}.",
        )
    return UserError(
        "permission-denied",
        f"role {role} may not read {relation}, which view {view} reads in its name",
        hint=f"Have the owner of {relation} run: GRANT SELECT ON {relation} TO {quoted};",
    )
