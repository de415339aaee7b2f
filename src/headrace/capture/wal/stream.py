"""A replication session in which the server sends the slot's messages as transactions commit.

A thread receives the messages, keeps them in a spool, and answers the server, so that a long
refresh blocks nobody. The session ends with the first failure: the next session receives everything
again from the slot's position, into an empty spool.
"""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from headrace.capture.wal.protocol import MESSAGE, MESSAGE_AT, parse_keepalive, start, status
from headrace.capture.wal.slot import slot_fault
from headrace.capture.wal.spool import Spool
from headrace.errors import HeadraceError, InternalError, Transient, Unavailable, UserError
from headrace.source.connection import Database
from headrace.source.faults import translated

SETTING = "SELECT current_setting('synchronous_standby_names')"
# The names of a list such as: FIRST 2 (one, "an other", *). Keywords and numbers do no harm.
NAME = re.compile(r'"((?:[^"]|"")*)"|([^\s,()"]+)')


def is_standby(setting: str, name: str) -> bool:
    """Return whether a server with this setting counts an application as a standby (pure).

    Commits that wait for synchronous standbys would then continue with our reported positions,
    although we could not restore anything. PostgreSQL matches standbys by application name; its
    view of standbys does not show a session that has flushed nothing as one.
    """
    listed = {quoted.replace('""', '"') or bare for quoted, bare in NAME.findall(setting)}
    return "*" in listed or name.lower() in {name_.lower() for name_ in listed}


def require_no_standby(database: Database, name: str) -> None:
    """Raise `capture-not-set-up` if the server counts this application as a synchronous standby."""
    with database.session() as connection, translated():
        row = connection.execute(SETTING).fetchone()
    if row is not None and is_standby(row[0], name):
        raise UserError(
            "capture-not-set-up",
            "the server counts the stream as a synchronous standby",
            detail=f"synchronous_standby_names is {row[0]}.",
            hint=f"List the standbys there by name, and give none of them the name {name}.",
        )


# Interval of status messages; the server ends a session after wal_sender_timeout, 60 s.
STATUS_SECONDS = 5.0
# Interval at which a waiting reader requests the server's position.
ASK_SECONDS = 0.25
# How long a server may take to start the stream, and the thread to end.
BEGIN_SECONDS, END_SECONDS = 60.0, 5.0


def ignore_changes() -> None:
    """Ignore arriving transactions: the default listener of a stream."""


class Stream:
    """A session that starts at once and lasts until it fails or is closed.

    At most `ceiling` bytes are kept. The stream's thread calls `heard` when the first transaction
    arrives after a call of `received`. Only `acknowledge` advances the slot. The constructor raises
    OSError or RuntimeError if the process may have no more files or threads.
    """

    def __init__(
        self,
        database: Database,
        slot: str,
        publication: str,
        *,
        ceiling: int,
        heard: Callable[[], None] = ignore_changes,
        spool: Spool | None = None,
    ) -> None:
        self.spool = Spool() if spool is None else spool
        self.failure: HeadraceError | None = None
        self.pid: int | None = None
        self.reached = 0
        self._name = ""
        self._database = database
        self._command = start(slot, publication)
        self.ceiling = ceiling
        self.heard = heard
        self._changed = threading.Condition()
        self._notified = False
        self._stopped = False
        self._closed = False
        self._status_requested = False
        self._acknowledged = 0
        self._to_flush = 0
        self._status_at = 0.0
        self._progress_at = time.monotonic()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._poll = select.poll()
        self._thread = threading.Thread(target=self._run, name=f"headrace-{slot}", daemon=True)
        self._thread.start()

    def wait(self, upto: int, seconds: float) -> bool:
        """Wait until all transactions that end before a position have arrived.

        Return False if the stream has ended, or nothing came for so many seconds.
        """
        begun = time.monotonic()
        with self._changed:
            while self.reached < upto:
                silent_since = max(begun, self._progress_at)
                if self.failure is not None or time.monotonic() - silent_since > seconds:
                    return False
                self._status_requested = True
                self._wake()
                self._changed.wait(min(ASK_SECONDS, seconds))
        return True

    def received(self) -> int:
        """Return the position up to which all has arrived, and call `heard` once for the next."""
        self._notified = False
        return self.reached

    def acknowledge(self, position: int) -> None:
        """Release what is before a recorded position, in the spool and, soon, in the slot."""
        self.spool.trim(position)
        with self._changed:
            if position > self._acknowledged:
                self._acknowledged = self._to_flush = position
        self._wake()

    def close(self) -> None:
        """End the session after reporting what was acknowledged.

        A thread that does not end in time, because it still connects, ends later by itself.
        """
        self._stopped = True
        self._wake()
        self._thread.join(END_SECONDS)
        with self._changed:
            self._closed = True
            if self.failure is not None:
                self._release()

    def _release(self) -> None:
        self.spool.close()
        self._woken.close()
        self._waker.close()

    def _wake(self) -> None:
        with suppress(OSError):
            self._waker.send(b"x")

    def _run(self) -> None:
        try:
            with closing(self._database.replication()) as connection:
                self.pid = connection.info.backend_pid
                self._name = connection.info.parameter_status("application_name") or ""
                session = connection.pgconn
                self._begin(session)
                while not self._stopped:
                    self._send_status(session)
                    self._receive(session)
                self._send_status(session)
            failure: HeadraceError = Transient("connection-lost", "the stream was closed")
        except HeadraceError as error:
            failure = error
        except psycopg.Error as error:
            failure = slot_fault(error)
        except OSError as error:
            failure = Unavailable("store-full", f"could not store the stream on disk: {error}")
        except Exception as error:  # noqa: BLE001  a waiting reader has to get it
            failure = InternalError("invariant", f"{type(error).__name__}: {error}")
        with self._changed:
            self.failure = failure
            self._changed.notify_all()
            if self._closed:
                self._release()
        self.heard()

    def _begin(self, session: PGconn) -> None:
        """Start the stream; raise if the server does not answer in time."""
        session.nonblocking = 0
        self._poll.register(session.socket, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        until = time.monotonic() + BEGIN_SECONDS
        self._require_no_standby()
        if not self._stopped:
            session.send_query(self._command)
        while not self._stopped:
            self._poll.poll(max(0.0, until - time.monotonic()) * 1000)
            self._drain_wakeups()
            session.consume_input()
            if not session.is_busy():
                break
            if time.monotonic() > until:
                raise Transient(
                    "connection-lost",
                    f"the server did not start the stream within {BEGIN_SECONDS:.0f} s",
                )
        if self._stopped:
            raise Transient("connection-lost", "the stream was closed")
        result = session.get_result()
        if result is None or result.status != ExecStatus.COPY_BOTH:
            raise _server_error(result)
        # Messages may have come with the answer: do not wait for more.
        self._wake()

    def _send_status(self, session: PGconn) -> None:
        """Send a status to the server; a flushed position only after an `acknowledge`."""
        with self._changed:
            asks, self._status_requested = self._status_requested, False
            flushed, self._to_flush = self._to_flush, 0
        now = time.time()
        if flushed:
            self._require_no_standby()
            session.put_copy_data(status(self.reached, flushed, at=now))
        due = time.monotonic() - self._status_at >= STATUS_SECONDS
        if flushed or asks or due:
            session.put_copy_data(status(self.reached, at=now, asks=asks))
            session.flush()
            self._status_at = time.monotonic()

    def _require_no_standby(self) -> None:
        """Check at the start and before each flushed position: settings may change at any time."""
        require_no_standby(self._database, self._name)

    def _drain_wakeups(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)

    def _receive(self, session: PGconn) -> None:
        """Wait for the server or a wake-up, and process all messages that have come."""
        self._poll.poll(STATUS_SECONDS * 1000)
        self._drain_wakeups()
        session.consume_input()
        messages, reached = [], self.reached
        while True:
            size, frame = session.get_copy_data(1)
            if size == 0:
                break
            if size < 0:
                raise _end(session)
            if frame[0] == MESSAGE:
                messages.append(bytes(frame[MESSAGE_AT:]))
            else:
                alive = parse_keepalive(bytes(frame))
                reached = max(reached, alive.position)
                if alive.asks:
                    self._status_at = 0.0
        ended = self.spool.extend(messages)
        if messages:
            self._progress_at = time.monotonic()
        if self.spool.size > self.ceiling:
            raise Unavailable(
                "store-full",
                f"the stream exceeds {self.ceiling >> 20} MB of changes that no cut has taken",
            )
        # Transactions are sent in the order in which they end.
        reached = max(reached, ended)
        if reached > self.reached:
            with self._changed:
                self.reached, self._progress_at = reached, time.monotonic()
                self._changed.notify_all()
        if ended and not self._notified:
            self._notified = True
            self.heard()


def _end(session: PGconn) -> HeadraceError:
    """Return the error with which the server ended the session."""
    return _server_error(session.get_result())


def _server_error(result: PGresult | None) -> HeadraceError:
    if result is not None and result.status == ExecStatus.FATAL_ERROR:
        return slot_fault(psycopg.errors.error_from_result(result))
    return Transient("connection-lost", "the server ended the stream")
