"""Replica identities: whether what the WAL has of old rows allows WAL mode for a table.

On a published table without a replica identity the application's own UPDATE and DELETE fail. So
the identity is checked before a table is added to the publication, and at every cut afterwards. For
a partitioned table the partitions decide: each writes old rows by its own identity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from psycopg import Connection, Cursor, errors, sql

from headrace.capture.setup import perform
from headrace.capture.statements import script
from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.table import SourceTable

Kind = Literal["full", "key", "none"]

# The version that publishes stored generated columns.
GENERATED_SINCE = 18
WAIT = "Changing a replica identity needs a moment in which nobody reads or writes the table."

# For every table of the tree: its replica identity and key columns. The column numbers are those of
# the root, matched by name: a partition may number its columns differently.
IDENTITY = """
WITH RECURSIVE tree AS (
    SELECT c.oid AS root, c.oid FROM pg_class c WHERE c.oid = ANY (%(oids)s::oid[])
    UNION ALL
    SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT t.root, c.oid = t.root, c.relkind, c.relpersistence, c.relreplident, x.indexrelid,
    ARRAY(
        SELECT r.attnum FROM unnest(x.indkey[0 : x.indnkeyatts - 1]) AS k (number)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
        JOIN pg_attribute r ON r.attrelid = t.root AND r.attname = a.attname
        ORDER BY r.attnum
    ),
    ARRAY(
        SELECT a.attnum FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attgenerated = 's' AND NOT a.attisdropped
    ),
    EXISTS (
        SELECT FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attgenerated = 'v' AND NOT a.attisdropped
    ),
    quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM tree t JOIN pg_class c ON c.oid = t.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index x ON x.indrelid = c.oid AND x.indisvalid AND CASE c.relreplident
    WHEN 'd' THEN x.indisprimary AND x.indimmediate
    WHEN 'i' THEN x.indisreplident
    ELSE false
END
ORDER BY t.root, c.oid <> t.root, c.oid
"""


@dataclass(frozen=True)
class ReplicaIdentity:
    """What the WAL has of old rows: all columns (`full`), the `key` columns, or nothing usable.

    `key` has column numbers of the table, ascending, and `index` the oid of their index; both are
    empty with `full`. `reason` explains the kind `none`. `curable`: ALTER TABLE … REPLICA IDENTITY
    FULL on each of `tables`, which are quoted names, would allow WAL mode.
    """

    kind: Kind
    key: tuple[int, ...] = ()
    index: int | None = None
    reason: str | None = None
    curable: bool = False
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class TreeMember:
    """One table of an inheritance tree, as the system catalogs have it."""

    is_root: bool
    relkind: str
    persistence: str
    setting: str
    index: int | None
    key: tuple[int, ...]
    stored_generated: tuple[int, ...]
    virtual_generated: bool
    name: str


def ask_identities(connection: Connection[Any], oids: Iterable[int]) -> Cursor[Any]:
    """Send the query of the trees of tables; in a pipeline the answer is read later."""
    return connection.execute(IDENTITY, {"oids": sorted(oids)})


def read_members(answer: Cursor[Any]) -> dict[int, tuple[TreeMember, ...]]:
    """Return the tables of each source's tree from the answer, the source itself first."""
    trees: dict[int, list[TreeMember]] = {}
    for root, *fields in answer:
        values: list[Any] = [tuple(each) if isinstance(each, list) else each for each in fields]
        trees.setdefault(root, []).append(TreeMember(*values))
    return {root: tuple(members) for root, members in trees.items()}


def identities(
    connection: Connection[Any], tables: Iterable[SourceTable], version: int
) -> dict[int, ReplicaIdentity]:
    """Return the identity of each table in the connection's snapshot, without dropped tables."""
    by_oid = {table.oid: table for table in tables}
    with translated():
        members = read_members(ask_identities(connection, by_oid))
    return {
        oid: judge(tree, {column.number for column in by_oid[oid].stored}, version)
        for oid, tree in members.items()
    }


def judge(
    members: tuple[TreeMember, ...], captured: Collection[int], version: int
) -> ReplicaIdentity:
    """Return the identity of a tree of tables, whose `captured` columns are needed (pure)."""
    root = members[0]
    leaves = [member for member in members if member.relkind == "r"]
    names = tuple(member.name for member in leaves)
    for member in members:
        if member.persistence != "p":
            kind = "a temporary" if member.persistence == "t" else "an unlogged"
            return _no(f"{member.name} is {kind} table, which is not written to the WAL")
    if version < GENERATED_SINCE and not set(root.stored_generated).isdisjoint(captured):
        return _no(
            "it has generated columns,"
            f" which PostgreSQL publishes from version {GENERATED_SINCE} on"
        )
    if any(member.virtual_generated and member.setting == "f" for member in leaves):
        return _no(
            "with a virtual generated column it cannot be published as REPLICA IDENTITY FULL"
        )
    curable = not any(member.virtual_generated for member in leaves)
    if root.relkind != "p":
        return replace(_alone(root, curable), tables=names)
    if not root.key or root.setting not in "di":
        return _no(
            "a partitioned table needs a primary key as its replica identity: without one, UPDATE "
            "would fail on partitions that are added later"
        )
    for leaf in leaves:
        if leaf.setting != "f" and leaf.key != root.key:
            return _no(f"partition {leaf.name} has another replica identity", curable, names)
    if leaves and all(leaf.setting == "f" for leaf in leaves):
        return ReplicaIdentity("full", tables=names)
    return ReplicaIdentity("key", root.key, root.index, tables=names)


def _alone(table: TreeMember, curable: bool) -> ReplicaIdentity:
    if table.setting == "f":
        return ReplicaIdentity("full")
    if table.index is not None:
        return ReplicaIdentity("key", table.key, table.index)
    reason = {
        "n": "its replica identity is NOTHING",
        "d": "it has no primary key, and its replica identity is not FULL",
        "i": "the index of its replica identity was dropped",
    }[table.setting]
    return _no(reason, curable)


def _no(reason: str, curable: bool = False, tables: tuple[str, ...] = ()) -> ReplicaIdentity:
    return ReplicaIdentity("none", reason=reason, curable=curable, tables=tables)


def full_sql(identity: ReplicaIdentity) -> tuple[sql.Composed, ...]:
    """Return the statements that give a table, or its partitions, REPLICA IDENTITY FULL."""
    # The names are quoted by PostgreSQL itself.
    return tuple(
        sql.Composed([sql.SQL("ALTER TABLE "), sql.SQL(name), sql.SQL(" REPLICA IDENTITY FULL")])
        for name in identity.tables
    )


def auto_replica_identity(database: Database, identity: ReplicaIdentity, name: str) -> bool:
    """Give a table REPLICA IDENTITY FULL if that allows WAL mode; return whether it did.

    Raises `capture-not-set-up` with the SQL for the owner, `source-locked` if the table is locked.
    """
    if identity.kind != "none" or not identity.curable:
        return False
    statements = full_sql(identity)
    try:
        perform(database, lambda _: statements, name, detail=WAIT)
    except errors.InsufficientPrivilege as error:
        raise UserError(
            "capture-not-set-up",
            f"permission denied to change the replica identity of {name}",
            detail=error.diag.message_primary,
            hint=f"Have the table's owner run in this database:\n{script(statements)}",
        ) from error
    return True
