"""The rows of a table in an exported snapshot, in ranges of pages that are read side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from adbc_driver_manager import Error as ArrowError
from adbc_driver_postgresql import dbapi
from psycopg import Connection, sql

from headrace.errors import HeadraceError, Transient, UserError
from headrace.source.describe import UserObject, objects_sql, own_view
from headrace.source.faults import translate, translated
from headrace.source.reading import read_sql, relation_sql, to_stored
from headrace.source.table import SourceColumn, SourceTable

# Starting a range of fewer pages costs more than reading it.
MINIMUM_PAGES = 128

# A partition is read by its own name if the role may: PostgreSQL does not prune partitions by a
# condition on tableoid.
LEAVES = """
WITH RECURSIVE tree AS (
    SELECT %(oid)s::oid AS oid
    UNION ALL
    SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT c.oid, n.nspname, c.relname,
    pg_relation_size(c.oid) / current_setting('block_size')::bigint, pg_table_size(c.oid),
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
        AND NOT row_security_active(c.oid)
FROM tree t
JOIN pg_class c ON c.oid = t.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r'
ORDER BY c.oid
"""


@dataclass(frozen=True)
class LeafTable:
    """A table that holds rows itself: a row of `LEAVES`."""

    oid: int
    schema: str
    name: str
    pages: int
    bytes: int
    readable: bool


@dataclass(frozen=True)
class Range:
    """A range of pages of one table, for `read_sql`: SQL text of the relation and the condition.

    `bytes` is their size when the range was made, with their share of TOAST.
    """

    relation: str
    where: str
    bytes: int


def page_ranges(connection: Connection[Any], table: SourceTable, parts: int) -> tuple[Range, ...]:
    """Return about `parts` ranges that together cover every row of the table.

    Call it after taking the snapshot that the ranges are read in, with the table locked: then
    every row of the snapshot lies on a page counted here. The last range of each leaf is open-ended
    anyway.
    """
    with translated():
        rows = connection.execute(LEAVES, {"oid": table.oid}).fetchall()
    leaves = [LeafTable(*row) for row in rows]
    pages = max(sum(leaf.pages for leaf in leaves) // max(parts, 1) + 1, MINIMUM_PAGES)
    return tuple(
        Range(_relation(table, leaf), _where(leaf, first, last), _bytes(leaf, first, last))
        for leaf in leaves
        for first, last in _steps(leaf.pages, pages)
    )


def _steps(size: int, step: int) -> Iterator[tuple[int, int | None]]:
    """Yield the first page and the first page beyond each range, None if it is open-ended."""
    starts = list(range(0, size, step)) or [0]
    yield from zip(starts, [*starts[1:], None], strict=True)


def _relation(table: SourceTable, leaf: LeafTable) -> str:
    if leaf.readable:
        return relation_sql(leaf.schema, leaf.name)
    return sql.Identifier(table.schema, table.name).as_string()


def _bytes(leaf: LeafTable, first: int, last: int | None) -> int:
    pages = (leaf.pages if last is None else last) - first
    return leaf.bytes * pages // max(leaf.pages, 1)


def _where(leaf: LeafTable, first: int, last: int | None) -> str:
    conditions = [] if leaf.readable else [sql.SQL("tableoid = {}::oid").format(leaf.oid)]
    conditions.append(sql.SQL("ctid >= {}::tid").format(sql.Literal(f"({first},0)")))
    if last is not None:
        conditions.append(sql.SQL("ctid < {}::tid").format(sql.Literal(f"({last},0)")))
    return sql.SQL(" AND ").join(conditions).as_string()


# Data exceptions, and a subquery with more than one row.
_FAILED = ("21", "22")
# A snapshot ends with the transaction that exported it; a table may be gone by then, too.
_CUT_GONE = ("22023", "42704", "42P01", "55000")


def range_sql(part: Range, columns: Sequence[SourceColumn]) -> tuple[str, str]:
    """Return the statement that locks the range's table, and the query that reads its rows."""
    lock = f"LOCK TABLE {part.relation} IN ACCESS SHARE MODE"
    return lock, read_sql(part.relation, columns, part.where)


def read_in_snapshot(
    conninfo: str, snapshot: str, lock: str, query: str, columns: Sequence[SourceColumn]
) -> Iterator[pa.Table]:
    """Yield the rows of one `range_sql` in their stored types, one batch in memory at a time.

    The exporting transaction, and its lock on the table, must outlive the reading.
    """
    try:
        with (
            dbapi.connect(conninfo, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            _enter(cursor, snapshot, lock)
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                yield to_stored(batch, columns)
            cursor.execute("COMMIT")
    except ArrowError as error:
        raise translate(error) from error


def answer_in_snapshot(
    conninfo: str,
    snapshot: str,
    query: str,
    columns: Sequence[SourceColumn],
    refuse: Callable[[UserObject], HeadraceError],
) -> Iterator[pa.Table]:
    """Yield the result of a query of built-in functions, in the stored types, batch by batch.

    Raises `query-failed` if PostgreSQL cannot compute it, and the error of `refuse` for a user
    object that it would call. The query is run through a view whose objects were checked: the text
    alone could resolve to other objects a moment later.
    """
    try:
        with (
            dbapi.connect(conninfo, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            _enter(cursor, snapshot, "SET LOCAL search_path = pg_catalog, pg_temp", "READ WRITE")
            view = _create_view(cursor, query)
            cursor.execute(objects_sql(view))
            for row in cursor.fetchall():
                raise refuse(UserObject(*row))
            cursor.execute(f"SELECT * FROM {view}")
            for batch in cursor.fetch_record_batch():
                yield to_stored(batch, columns)
            cursor.execute("ROLLBACK")
    except ArrowError as error:
        if (error.sqlstate or "")[:2] in _FAILED:
            raise _failed(error) from error
        raise translate(error) from error
    except (OSError, pa.ArrowException) as error:
        # Arrow passes no SQLSTATE on for a query that has begun to answer.
        raise _failed(error) from error


def _create_view(cursor: Any, query: str) -> str:
    """Create a view of the query, temporary if the role may, and return its name."""
    cursor.execute("SELECT has_database_privilege(current_database(), 'TEMPORARY')")
    ((temporary,),) = cursor.fetchall()
    view = "pg_temp.headrace_answer" if temporary else own_view(os.getpid())
    cursor.execute(f"CREATE VIEW {view} AS {query}")
    return view


def _failed(error: Exception) -> UserError:
    message = str(error).strip().split("\n", 1)[0]
    return UserError("query-failed", f"PostgreSQL could not run the query: {message}")


def _enter(cursor: Any, snapshot: str, lock: str, mode: str = "READ ONLY") -> None:
    quoted = "'" + snapshot.replace("'", "''") + "'"
    try:
        cursor.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ {mode}")
        cursor.execute(f"SET TRANSACTION SNAPSHOT {quoted}")
        # A queued ALTER TABLE waits for our cut: lock_timeout ends this wait behind it.
        cursor.execute(lock)
    except ArrowError as error:
        if error.sqlstate in _CUT_GONE:
            raise Transient(
                "cut-interrupted", "the snapshot of the copy no longer exists"
            ) from error
        raise
