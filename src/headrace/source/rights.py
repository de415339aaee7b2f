"""Whether a role may read source tables, and whether reading could run other users' code.

Planning a query evaluates constant parts of a table's indexes and statistics with the rights of the
current role: the owner of the table, or of a function in them, could run code with our rights. So
every such function has to belong to a role that has our rights already.

Triggers, rules, policies, defaults and constraints run with the rights of the role that writes to
the table. Other users could have put them into one of our schemas, or created it before us. Trusted
are superusers, our own roles, and roles that may become the current one anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, Cursor, sql

from headrace.errors import UserError
from headrace.source.faults import translated

FIRST_USER_OID = 16384

# Rights are current, whatever the snapshot of the transaction. A partitioned table's key depends on
# functions as an index does. `called` is computed once for all tables, each dependency by index:
# PostgreSQL has no statistics on new objects, and a plan that expects few of them would scan all of
# them for every table.
RIGHTS = sql.SQL("""
WITH RECURSIVE tree AS (
    SELECT c.oid AS root, c.oid, c.relkind FROM pg_class c WHERE c.oid = ANY (%(oids)s::oid[])
    UNION ALL
    SELECT t.root, c.oid, c.relkind
    FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid JOIN pg_class c ON c.oid = i.inhrelid
), planned AS (
    SELECT t.root, 'pg_class'::regclass AS classid, t.oid FROM tree t WHERE t.relkind = 'p'
    UNION ALL
    SELECT t.root, 'pg_class'::regclass, i.indexrelid
    FROM tree t JOIN pg_index i ON i.indrelid = t.oid
    WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
    UNION ALL
    SELECT t.root, 'pg_statistic_ext'::regclass, s.oid
    FROM tree t JOIN pg_statistic_ext s ON s.stxrelid = t.oid WHERE s.stxexprs IS NOT NULL
), called AS MATERIALIZED (
    SELECT p.root, f.oid::regprocedure::text AS function
    FROM planned p
    CROSS JOIN LATERAL (
        SELECT * FROM pg_depend WHERE classid = p.classid AND objid = p.oid OFFSET 0
    ) d
    LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    JOIN pg_proc f ON f.oid = o.oprcode
        OR d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
    WHERE d.refobjid >= {first} AND f.oid >= {first}
        AND NOT pg_has_role(f.proowner, current_user, 'MEMBER')
)
SELECT c.oid, n.nspname, c.relname, current_user,
    has_schema_privilege(n.oid, 'USAGE'),
    has_table_privilege(c.oid, 'SELECT'),
    row_security_active(c.oid),
    EXISTS (SELECT FROM tree t WHERE t.root = c.oid AND t.relkind = 'f'),
    c.relkind <> 'p' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid),
    (SELECT min(k.function) FROM called k WHERE k.root = c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY (%(oids)s::oid[])
""").format(first=sql.Literal(FIRST_USER_OID))


@dataclass(frozen=True)
class Rights:
    """A role's rights on a source table; `function` is untrusted and could be run by reading."""

    oid: int
    schema: str
    name: str
    role: str
    usage: bool
    select: bool
    secured: bool
    foreign: bool
    inherited: bool
    function: str | None

    def problem(self) -> UserError | None:
        """Return the error for a table that must not be read, with a remedy; None if it may be."""
        table = f"{self.schema}.{self.name}"
        if not self.usage:
            schema = sql.Identifier(self.schema)
            return self._denied(sql.SQL("USAGE ON SCHEMA {}").format(schema))
        if not self.select:
            return self._denied(sql.SQL("SELECT ON {}").format(_name(self.schema, self.name)))
        if self.secured:
            return UserError(
                "row-security",
                f"row level security would hide rows of {table} from role {self.role}",
                detail="A stream table over an unknown part of the rows would be wrong.",
                hint=f"Have a superuser run: ALTER ROLE {self._role} BYPASSRLS; or connect as the"
                " owner.",
            )
        if self.foreign:
            return UserError(
                "unsupported-source",
                f"{table} has a foreign table as a partition",
                hint="Only ordinary and partitioned tables can be captured.",
            )
        if self.inherited:
            return UserError(
                "unsupported-source",
                f"{table} has tables that inherit from it",
                detail="Changes of their rows are not captured.",
                hint="Partition the table instead, or read the inheriting tables with UNION ALL.",
            )
        if self.function is not None:
            return UserError(
                "untrusted-object",
                f"reading {table} could run function {self.function} as role {self.role}",
                detail="PostgreSQL computes the constant parts of a table's indexes and statistics"
                " with the rights of whoever reads the table, and the function belongs to a role"
                " that does not have them.",
                hint="Drop the index or statistics, or have a superuser own the function:"
                f" ALTER FUNCTION {self.function} OWNER TO {self._role};",
            )
        return None

    @property
    def _role(self) -> str:
        return sql.Identifier(self.role).as_string()

    def _denied(self, target: sql.Composed) -> UserError:
        return UserError(
            "permission-denied",
            f"role {self.role} may not read {self.schema}.{self.name}",
            detail="Capture reads and locks the whole table; rights on single columns do not"
            " suffice.",
            hint=f"Have the owner run: GRANT {target.as_string()} TO {self._role};",
        )


def ask_rights(connection: Connection[Any], oids: Iterable[int]) -> Cursor[Any]:
    """Send the query of rights; in a pipeline the answer is read later."""
    return connection.execute(RIGHTS, {"oids": sorted(oids)})


def read_rights(answer: Cursor[Any]) -> dict[int, UserError]:
    """Return the tables of the answer that must not be read, each with the error."""
    problems = {row[0]: Rights(*row).problem() for row in answer}
    return {oid: problem for oid, problem in problems.items() if problem is not None}


def _name(schema: str, name: str) -> sql.Identifier:
    return sql.Identifier(schema, name)


TRUSTED = sql.SQL("""
SELECT r.oid FROM pg_roles r
WHERE r.rolsuper OR r.rolname = ANY (%(ours)s) OR pg_has_role(r.oid, current_user, 'MEMBER')
""")

# Each row is an object that an untrusted role has made, or its right to make one. A schema of ours
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

DETAIL = "Code that this role puts there would run with the rights of Headrace's own roles."


def require_own_schema(
    connection: Connection[Any], schema: str, ours: Collection[str] = ()
) -> None:
    """Raise `untrusted-object` if an untrusted role made a schema of ours, or something in it.

    `ours` are roles that are trusted besides the current one. A missing schema is fine.
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
        hint=f"Have a superuser inspect schema {name} and at event triggers. A schema that others"
        f" made goes with DROP SCHEMA {name} CASCADE; in one that a DBA made for Headrace, a"
        " superuser or Headrace's own role (the one of --setup-dsn, if it is given) has to own"
        " everything.",
    )
