"""A served table made again, empty, where PostgreSQL cannot alter it: partitioned in another way.

Users' grants, constraints, indexes and comments on the table are made again, too.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from headrace.catalog.records import StreamTable
from headrace.publish.served import Connection, create_served, served_name

_DEPENDENT_OBJECTS = """
SELECT 'ALTER TABLE ' || t.name || ' ADD CONSTRAINT ' || quote_ident(o.conname) || ' '
    || pg_get_constraintdef(o.oid)
FROM (SELECT to_regclass(%(name)s) AS oid, %(name)s AS name) t
JOIN pg_constraint o ON o.conrelid = t.oid AND o.contype IN ('c', 'p', 'u', 'f', 'x')
UNION ALL
SELECT pg_get_indexdef(i.indexrelid)
FROM pg_index i
WHERE i.indrelid = to_regclass(%(name)s)
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid AND contype <> 'f')
UNION ALL
SELECT 'GRANT ' || a.privilege_type || coalesce(' (' || quote_ident(g.attname) || ')', '')
    || ' ON TABLE ' || %(name)s || ' TO '
    || CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
    || CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
FROM (
    SELECT NULL::name AS attname, relacl AS acl FROM pg_class WHERE oid = to_regclass(%(name)s)
    UNION ALL
    SELECT attname, attacl FROM pg_attribute WHERE attrelid = to_regclass(%(name)s)
) g, aclexplode(g.acl) a
UNION ALL
SELECT 'COMMENT ON '
    || coalesce('COLUMN ' || %(name)s || '.' || quote_ident(a.attname), 'TABLE ' || %(name)s)
    || ' IS ' || quote_literal(d.description)
FROM pg_description d LEFT JOIN pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid
    AND d.objsubid > 0
WHERE d.objoid = to_regclass(%(name)s) AND d.classoid = 'pg_class'::regclass
"""


def remake(connection: Connection, table: StreamTable) -> None:
    """Make the served table again, without rows, with the columns and partitions of `table`.

    Users' objects on a column that is gone are left out, as dropping the column would do. Raise an
    error where views need the table, or where a unique index of users lacks the partition column.
    """
    name = served_name(table)
    statements = connection.execute(
        _DEPENDENT_OBJECTS, {"name": name.as_string(connection)}
    ).fetchall()
    connection.execute(sql.SQL("DROP TABLE {}").format(name))
    create_served(connection, table)
    for (statement,) in statements:
        try:
            with connection.transaction():
                connection.execute(statement)
        except psycopg.errors.UndefinedColumn:
            continue
