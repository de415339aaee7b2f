"""The writer lease in PostgreSQL: an advisory lock, and a number that only grows."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from headrace.catalog import advisory, writer_lock
from headrace.catalog.catalog import Connection, lease_held
from headrace.catalog.records import Lease
from headrace.catalog.session import Session
from headrace.errors import Transient, Unavailable

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2


class WriterLease:
    """The writer's lock and its fence: the session that has the lock may write.

    The lock belongs to the catalog's own session, so it ends with the process or the connection.
    A writer that goes on without the lock is stopped by the fence, which every holder raises and
    every commit checks. A session may take an advisory lock twice, so a thread lock keeps threads
    apart.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = threading.RLock()
        self._lease: Lease | None = None

    @contextmanager
    def hold(self, holder: str, wait: float, serves: bool) -> Iterator[Lease]:
        deadline = time.monotonic() + wait
        current_lease = self._lease
        patience = 0.0 if current_lease is not None and current_lease.serves else max(wait, 0.0)
        if not self._thread.acquire(timeout=patience):
            raise lease_held(self._lease)
        try:
            if self._lease is not None:
                yield self._lease
                return
            connection, number, self._lease = self._acquire(holder, deadline, serves)
            try:
                yield self._lease
            finally:
                self._lease = None
                self._release(connection, number)
        finally:
            self._thread.release()

    def _acquire(self, holder: str, deadline: float, serves: bool) -> tuple[Connection, int, Lease]:
        """Take the lock; return the session that has it, the lock's number, and the lease."""
        pause = _FIRST_PAUSE
        while True:
            with self._session.use() as connection:
                number = writer_lock.take(connection)
                if number is not None:
                    try:
                        return connection, number, _raise_fence(connection, holder, serves)
                    except BaseException:
                        self._release(connection, number)
                        raise
                remaining = deadline - time.monotonic()
                if remaining <= 0 or serving(connection) is not None:
                    raise lease_held(_current(connection))
            time.sleep(min(pause, remaining))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _release(self, connection: Connection, number: int) -> None:
        """Release the lock in the session that took it; a closed connection has done so already."""
        if connection.closed:
            return
        with suppress(Transient, Unavailable), self._session.use() as current:
            if current is connection:
                writer_lock.release(current, number)


def _raise_fence(connection: Connection, holder: str, serves: bool) -> Lease:
    row = connection.execute(
        "UPDATE headrace.lease SET fence = fence + 1, holder = %s, pid = %s, acquired_at = now(),"
        " serves = %s, backend = pg_backend_pid()"
        " RETURNING fence, holder, pid, acquired_at, serves",
        (holder, os.getpid(), serves),
    ).fetchone()
    assert row is not None
    return _decode(row)


def _current(connection: Connection) -> Lease | None:
    row = connection.execute(
        "SELECT fence, holder, pid, acquired_at, serves FROM headrace.lease"
        " WHERE holder IS NOT NULL"
    ).fetchone()
    return None if row is None else _decode(row)


def serving(connection: Connection) -> Lease | None:
    """Return the lease, if its holder serves and the session that took it still has the lock."""
    # The lock of a pair of numbers is in pg_locks as (classid, objid) with objsubid 2.
    row = connection.execute(
        "SELECT fence, holder, lease.pid, acquired_at, serves FROM headrace.lease AS lease"
        " WHERE serves AND EXISTS (SELECT FROM pg_locks AS lock"
        " JOIN pg_database ON pg_database.oid = lock.database AND datname = current_database()"
        " WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (%s, lock_number, 2)"
        " AND granted AND lock.pid = lease.backend)",
        (advisory.SPACE,),
    ).fetchone()
    return None if row is None else _decode(row)


def _decode(row: tuple[Any, ...]) -> Lease:
    fence, holder, pid, acquired_at, serves = row
    assert isinstance(acquired_at, datetime)
    return Lease(fence, holder, pid, acquired_at.astimezone(UTC), serves)
