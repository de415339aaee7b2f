"""The rows of a table in a snapshot that another transaction exported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from adbc_driver_manager import Error as ArrowError
from adbc_driver_postgresql import dbapi

from headrace.errors import HeadraceError, Transient, UserError
from headrace.source.faults import translate
from headrace.source.ranges import Range
from headrace.source.reading import read_sql, to_stored
from headrace.source.resolution import UserObject, objects_sql, own_view
from headrace.source.table import SourceColumn

# Data exceptions, and a subquery with more than one row.
_FAILED = ("21", "22")
# A snapshot ends with the transaction that exported it; a table may be gone by then, too.
_CUT_GONE = ("22023", "42704", "42P01", "55000")


def range_sql(part: Range, columns: Sequence[SourceColumn]) -> tuple[str, str]:
    """What locks the range's table, and what reads its rows."""
    lock = f"LOCK TABLE {part.relation} IN ACCESS SHARE MODE"
    return lock, read_sql(part.relation, columns, part.where)


def read_in_snapshot(
    conninfo: str, snapshot: str, lock: str, query: str, columns: Sequence[SourceColumn]
) -> Iterator[pa.Table]:
    """The rows of one `range_sql` in their stored types, batch by batch: memory holds one.

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
    """The answer to a query made of built-in functions, in the stored types, batch by batch.

    Raises `query-failed` where PostgreSQL cannot compute it, and what `refuse` makes of an object
    of a user's that it would call. What is answered is a view that has been looked at: the text
    alone could mean something else a moment later.
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
    """The name of a view of the query; Headrace's schema has it if the role may not make others."""
    cursor.execute("SELECT has_database_privilege(current_database(), 'TEMPORARY')")
    ((temporary,),) = cursor.fetchall()
    view = "pg_temp.headrace_answer" if temporary else own_view(os.getpid())
    cursor.execute(f"CREATE VIEW {view} AS {query}")
    return view


def _failed(error: Exception) -> UserError:
    message = str(error).strip().split("\n", 1)[0]
    return UserError("query-failed", f"PostgreSQL could not answer the query: {message}")


def _enter(cursor: Any, snapshot: str, lock: str, mode: str = "READ ONLY") -> None:
    quoted = "'" + snapshot.replace("'", "''") + "'"
    try:
        cursor.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ {mode}")
        cursor.execute(f"SET TRANSACTION SNAPSHOT {quoted}")
        # Behind a waiting ALTER TABLE this waits for us to end: lock_timeout ends it instead.
        cursor.execute(lock)
    except ArrowError as error:
        if error.sqlstate in _CUT_GONE:
            raise Transient("cut-interrupted", "the snapshot of the copy is gone") from error
        raise
