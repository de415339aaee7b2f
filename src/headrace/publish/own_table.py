"""Check that a served table is still the table that Headrace made, before it is written."""

from __future__ import annotations

from headrace.catalog.records import StreamTable
from headrace.errors import UserError
from headrace.publish.served import Connection, served_name
from headrace.source.rights import DETAIL

# The owner of the schema may drop the table and make another of its name; and whoever has the right
# to may create a trigger. All else that runs on writing only the owner can add. A superuser counts
# as a member of every role.
_FOREIGN = """
WITH RECURSIVE tree AS (
    SELECT to_regclass(%(name)s)::oid AS oid
    UNION ALL
    SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT format('%%s belongs to role %%s', c.oid::regclass, c.relowner::regrole)
FROM tree t JOIN pg_class c ON c.oid = t.oid
WHERE NOT pg_has_role(c.relowner, current_user, 'MEMBER')
UNION ALL
SELECT format('trigger %%I of %%s runs function %%s of role %%s',
    g.tgname, g.tgrelid::regclass, f.oid::regprocedure, f.proowner::regrole)
FROM tree t JOIN pg_trigger g ON g.tgrelid = t.oid JOIN pg_proc f ON f.oid = g.tgfoid
WHERE NOT pg_has_role(f.proowner, current_user, 'MEMBER')
LIMIT 1
"""


def require_own_table(connection: Connection, table: StreamTable) -> None:
    """Raise `untrusted-object` if another role owns the served table, or a trigger's function."""
    name = served_name(table).as_string(connection)
    row = connection.execute(_FOREIGN, {"name": name}).fetchone()
    if row is not None:
        raise UserError(
            "untrusted-object",
            str(row[0]),
            detail=DETAIL,
            hint=f"Drop what is not Headrace's, then run: headrace reinit {table.schema}"
            f".{table.name}",
        )
