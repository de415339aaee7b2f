"""Whether a served table is the one that Headrace made, before it is written."""

from __future__ import annotations

from psycopg import sql

from headrace.catalog.records import StreamTable
from headrace.errors import UserError
from headrace.publish.served import Connection, served_name
from headrace.source.ownership import DETAIL, TRUSTED

# The owner of the schema may drop the table and make another of its name; and whoever has the right
# to may create a trigger. All else that runs on writing only the owner can add.
_FOREIGN = sql.SQL("""
WITH RECURSIVE trusted AS ({trusted}), tree AS (
    SELECT to_regclass(%(name)s)::oid AS oid
    UNION ALL
    SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT format('%%s belongs to role %%s', c.oid::regclass, c.relowner::regrole)
FROM tree t JOIN pg_class c ON c.oid = t.oid WHERE c.relowner NOT IN (TABLE trusted)
UNION ALL
SELECT format('trigger %%I of %%s runs function %%s of role %%s',
    g.tgname, g.tgrelid::regclass, f.oid::regprocedure, f.proowner::regrole)
FROM tree t JOIN pg_trigger g ON g.tgrelid = t.oid JOIN pg_proc f ON f.oid = g.tgfoid
WHERE f.proowner NOT IN (TABLE trusted)
LIMIT 1
""").format(trusted=TRUSTED)


def require_own_table(connection: Connection, table: StreamTable) -> None:
    """Raise `untrusted-object` if another role owns the served table, or a trigger's function."""
    name = served_name(table).as_string(connection)
    row = connection.execute(_FOREIGN, {"name": name, "ours": []}).fetchone()
    if row is not None:
        raise UserError(
            "untrusted-object",
            str(row[0]),
            detail=DETAIL,
            hint=f"Drop what is not Headrace's, then run: headrace reinit {table.schema}"
            f".{table.name}",
        )
