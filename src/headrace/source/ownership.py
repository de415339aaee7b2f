"""Whether what Headrace relies on is its own, so that nobody else's code runs in its name.

Triggers, rules, policies, defaults and constraints of a table run with the rights of whoever writes
to it. Somebody who made one of our schemas before we did, or a table in it, could have put them
there. Trusted are superusers, our own roles, and roles that may become the current one anyway.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from psycopg import Connection, sql

from headrace.errors import UserError
from headrace.source.faults import translated
from headrace.source.rights import FIRST_USER_OID

TRUSTED = sql.SQL("""
SELECT r.oid FROM pg_roles r
WHERE r.rolsuper OR r.rolname = ANY (%(ours)s) OR pg_has_role(r.oid, current_user, 'MEMBER')
""")

# Each row is something that a role which is not trusted has made, or may put in. A schema of ours
# has no trigger, rule or policy at all.
FOREIGN = sql.SQL("""
WITH trusted AS ({trusted}), place AS (
    SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = %(schema)s
), relations AS (
    SELECT c.oid, c.relowner, c.relacl, c.relrowsecurity
    FROM pg_class c JOIN place p ON p.oid = c.relnamespace
), parts (classid, oid) AS (
    SELECT 'pg_class'::regclass, oid FROM relations
    UNION ALL
    SELECT 'pg_attrdef'::regclass, a.oid FROM pg_attrdef a JOIN relations c ON c.oid = a.adrelid
    UNION ALL
    SELECT 'pg_constraint'::regclass, k.oid
    FROM pg_constraint k JOIN relations c ON c.oid = k.conrelid
    UNION ALL
    SELECT 'pg_rewrite'::regclass, r.oid FROM pg_rewrite r JOIN relations c ON c.oid = r.ev_class
    UNION ALL
    SELECT 'pg_statistic_ext'::regclass, s.oid
    FROM pg_statistic_ext s JOIN relations c ON c.oid = s.stxrelid
), found (problem) AS (
    SELECT format('schema %%I belongs to role %%s', nspname, nspowner::regrole)
    FROM place WHERE nspowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('role %%s may create objects in schema %%I',
        CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, nspname)
    FROM place, aclexplode(nspacl) a
    WHERE a.privilege_type = 'CREATE' AND a.grantee NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('%%s belongs to role %%s', oid::regclass, relowner::regrole)
    FROM relations WHERE relowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('function %%s belongs to role %%s', f.oid::regprocedure, f.proowner::regrole)
    FROM pg_proc f JOIN place p ON p.oid = f.pronamespace
    WHERE f.proowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('type %%s belongs to role %%s', t.oid::regtype, t.typowner::regrole)
    FROM pg_type t JOIN place p ON p.oid = t.typnamespace
    WHERE t.typowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('trigger %%I of %%s was not made by Headrace', g.tgname, c.oid::regclass)
    FROM pg_trigger g JOIN relations c ON c.oid = g.tgrelid WHERE NOT g.tgisinternal
    UNION ALL
    SELECT format('role %%s may create triggers on %%s',
        CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, c.oid::regclass)
    FROM relations c, aclexplode(c.relacl) a
    WHERE a.privilege_type = 'TRIGGER' AND a.grantee NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('rule %%I of %%s was not made by Headrace', r.rulename, c.oid::regclass)
    FROM pg_rewrite r JOIN relations c ON c.oid = r.ev_class WHERE r.rulename <> '_RETURN'
    UNION ALL
    SELECT format('row level security of %%s was not enabled by Headrace', c.oid::regclass)
    FROM relations c
    WHERE c.relrowsecurity OR EXISTS (SELECT FROM pg_policy l WHERE l.polrelid = c.oid)
    UNION ALL
    SELECT format('%%s calls function %%s of role %%s',
        pg_describe_object(p.classid, p.oid, 0), f.oid::regprocedure, f.proowner::regrole)
    FROM parts p
    JOIN pg_depend d ON d.classid = p.classid AND d.objid = p.oid AND d.refobjid >= {first}
    LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    JOIN pg_proc f ON f.oid = o.oprcode
        OR d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
    WHERE f.oid >= {first} AND f.proowner NOT IN (TABLE trusted)
    UNION ALL
    SELECT format('event trigger %%I runs function %%s of role %%s',
        e.evtname, f.oid::regprocedure, f.proowner::regrole)
    FROM pg_event_trigger e JOIN pg_proc f ON f.oid = e.evtfoid
    WHERE e.evtenabled <> 'D' AND f.proowner NOT IN (TABLE trusted)
)
SELECT problem FROM found LIMIT 1
""").format(trusted=TRUSTED, first=sql.Literal(FIRST_USER_OID))

DETAIL = "What that role puts there would run with the rights of Headrace's own roles."


def require_own_schema(
    connection: Connection[Any], schema: str, ours: Collection[str] = ()
) -> None:
    """Raise `untrusted-object` if others made a schema of ours, or something in it.

    `ours` are roles that are trusted besides the current one. A schema that is not there is fine.
    """
    with translated():
        row = connection.execute(FOREIGN, {"schema": schema, "ours": list(ours)}).fetchone()
    if row is None:
        return
    name = sql.Identifier(schema).as_string()
    raise UserError(
        "untrusted-object",
        str(row[0]),
        detail=DETAIL,
        hint=f"Let a superuser look at schema {name} and at event triggers. A schema that others"
        f" made goes with DROP SCHEMA {name} CASCADE; in one that a DBA made for Headrace, a"
        " superuser or Headrace's own role (the one of --setup-dsn, if it is given) has to own"
        " everything.",
    )
