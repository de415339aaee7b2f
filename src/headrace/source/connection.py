"""One PostgreSQL database: its connections for rows, for Arrow, and for setting up capture."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from types import TracebackType
from typing import Any

import psycopg
import pyarrow as pa
from adbc_driver_manager import Error as ArrowError
from adbc_driver_postgresql import dbapi
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo
from psycopg.pq import Ping, TransactionStatus

from headrace.errors import Transient, Unavailable, UserError
from headrace.source.conninfo import parse, pinned, place, redacted, with_keepalive
from headrace.source.faults import translate
from headrace.source.introspect import CAPTURE_SCHEMA
from headrace.source.rights import require_own_schema

VERSIONS = range(15, 19)
# Buffers are mostly dead rows between two vacuums: a sequential scan would read them all.
BY_INDEX = {"enable_seqscan": "off"}
# The server ends a session that stops answering, which releases its slot, after this time.
REPLICATION = {"wal_sender_timeout": "60s"}

Row = tuple[Any, ...]


def _was_ended(connection: Connection[Row]) -> bool:
    """Return whether the server has ended an idle connection, which makes it readable."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class Database:
    """A database by its connection string; `setup_dsn` is that of the role that sets up capture.

    Connections are opened on demand. All are autocommit and pinned to `conninfo.SETTINGS`. Safe to
    use from several threads.
    """

    def __init__(self, dsn: str, setup_dsn: str | None = None) -> None:
        parse(dsn)
        if setup_dsn is not None:
            parse(setup_dsn)
        self._dsn = dsn
        self._setup_dsn = setup_dsn
        self._lock = threading.Lock()
        self._idle: list[Connection[Row]] = []
        self._idle_arrow: dict[bool, list[Any]] = {False: [], True: []}
        self._reached = False
        self._capture_is_ours = False

    def __repr__(self) -> str:
        return f"Database({place(self._dsn)!r})"

    @cached_property
    def version(self) -> int:
        """Return the server's major version; raise `unsupported-server` outside 15 to 18."""
        with self._open(with_keepalive(self._dsn)) as connection:
            version = connection.info.server_version // 10000
        if version not in VERSIONS:
            raise UserError(
                "unsupported-server",
                f"PostgreSQL {version} is not supported",
                hint=f"Use a server of version {VERSIONS[0]} to {VERSIONS[-1]}.",
            )
        return version

    @cached_property
    def conninfo(self) -> str:
        """Return the pinned connection string, for other libpq clients. It may hold a password."""
        return pinned(self._dsn, self.version)

    @cached_property
    def search_path(self) -> tuple[str, ...]:
        """Return the role's own search path, for names without a schema."""
        with self._open(with_keepalive(self._dsn)) as connection:
            row = connection.execute("SELECT pg_catalog.current_schemas(false)").fetchone()
        return tuple(row[0]) if row and row[0] else ("public",)

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """Return the runtime role and the role that sets up capture."""
        names = []
        for address in dict.fromkeys((self._dsn, self._setup_dsn or self._dsn)):
            with self._open(pinned(address, self.version)) as connection:
                row = connection.execute("SELECT current_user::text").fetchone()
            names.append(str(row[0]) if row else "")
        return tuple(names)

    @cached_property
    def superusers(self) -> tuple[str, ...]:
        """Return which of the two roles are superusers; neither has to be."""
        query = "SELECT rolname::text FROM pg_roles WHERE rolsuper AND rolname = ANY (%s)"
        with self.session() as connection:
            rows = connection.execute(query, [list(self.roles)]).fetchall()
        return tuple(name for (name,) in rows)

    def require_own_capture(self, *, again: bool = False) -> None:
        """Raise `untrusted-object` if others made part of the schema of change capture.

        The result is remembered; `again` repeats the check before something is created there.
        """
        if again or not self._capture_is_ours:
            with self.session() as connection:
                require_own_schema(connection, CAPTURE_SCHEMA, self.roles)
            self._capture_is_ours = True

    def connect(self) -> Connection[Row]:
        """Return a new connection, owned by the caller."""
        return self._open(self.conninfo)

    def setup_connection(self) -> Connection[Row]:
        """Return a new connection of the role that sets up capture."""
        return self._open(pinned(self._setup_dsn or self._dsn, self.version))

    def replication(self) -> Connection[Row]:
        """Return a new connection over which the WAL can be streamed, owned by the caller."""
        address = pinned(self._dsn, self.version, REPLICATION)
        return self._open(make_conninfo(address, replication="database"))

    @contextmanager
    def session(self) -> Iterator[Connection[Row]]:
        """Lend a connection; it is pooled afterwards unless it is broken or in a transaction."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None and _was_ended(connection):
            connection.close()
            self.close()  # whatever ended it ended the others too
            connection = None
        if connection is None:
            connection = self.connect()
        try:
            yield connection
        finally:
            if connection.info.transaction_status == TransactionStatus.IDLE:
                with self._lock:
                    self._idle.append(connection)
            elif connection.broken:
                self.close()  # whatever broke it broke the idle ones too
            else:
                connection.close()

    def arrow(self, query: str | sql.Composed, *, by_index: bool = False) -> pa.Table:
        """Return the result of a query as Arrow, by COPY; `by_index` avoids sequential scans."""
        with self._arrow_cursor(by_index) as cursor:
            cursor.execute(query if isinstance(query, str) else query.as_string())
            return cursor.fetch_arrow_table()

    def arrow_in(self, snapshot: str, *queries: str) -> list[pa.Table]:
        """Return the results of queries in an exported snapshot, by indexes.

        Locks are not waited for: their holder may itself wait for the exporting connection.
        """
        with self._arrow_cursor(True) as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute(
                sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)).as_string()
            )
            cursor.execute("SET LOCAL lock_timeout = '50ms'")
            tables = []
            for query in queries:
                cursor.execute(query)
                tables.append(cursor.fetch_arrow_table())
            cursor.execute("COMMIT")
            return tables

    def arrow_batches(
        self, query: str | sql.Composed, *, by_index: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query as it arrives, in batches of some megabytes."""
        with self._arrow_cursor(by_index) as cursor:
            cursor.execute(query if isinstance(query, str) else query.as_string())
            reader = cursor.fetch_record_batch()
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
                except (OSError, pa.ArrowException) as error:
                    # Arrow passes no SQLSTATE on. A query that has begun to send only fails if its
                    # session is ended.
                    raise Transient("connection-lost", str(error).strip()) from error
                yield batch

    @contextmanager
    def _arrow_cursor(self, by_index: bool) -> Iterator[Any]:
        """Lend a cursor; its connection is pooled afterwards unless something fails."""
        with self._lock:
            idle = self._idle_arrow[by_index]
            connection = idle.pop() if idle else None
        try:
            if connection is None:
                settings = BY_INDEX if by_index else None
                address = pinned(self._dsn, self.version, settings)
                connection = dbapi.connect(address, autocommit=True)
            with connection.cursor() as cursor:
                yield cursor
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, ArrowError):
                raise translate(error) from error
            raise
        with self._lock:
            self._idle_arrow[by_index].append(connection)

    def close(self) -> None:
        """Close idle connections; those lent out are closed by their users."""
        with self._lock:
            idle = [*self._idle, *self._idle_arrow[False], *self._idle_arrow[True]]
            self._idle = []
            self._idle_arrow = {False: [], True: []}
        for connection in idle:
            with suppress(psycopg.Error, ArrowError):
                connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self, address: str) -> Connection[Row]:
        try:
            connection = psycopg.connect(address, autocommit=True)
        except psycopg.OperationalError as error:
            raise self._refused(address, error) from None
        self._reached = True
        return connection

    def _refused(
        self, address: str, error: psycopg.OperationalError
    ) -> Unavailable | Transient | UserError:
        """Return the error of a failed connect; without an SQLSTATE from libpq, ping the server."""
        libpq_message = redacted(str(error).strip(), self._dsn, self._setup_dsn)
        if psycopg.pq.PGconn.ping(address.encode()) != Ping.OK:
            return Unavailable(
                "server-unreachable",
                f"could not connect to PostgreSQL at {place(address)}",
                detail=libpq_message,
                hint="Check that the server is running, and that host and port are right.",
            )
        if self._reached:
            return Transient(
                "connection-lost", "the server refused the connection", detail=libpq_message
            )
        return UserError(
            "invalid-dsn",
            "the server refused the connection",
            detail=libpq_message,
            hint="Check database, user and password in the connection string.",
        )
