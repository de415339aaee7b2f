"""STREAM"""

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
# Those of a list such as: FIRST 2 (one, "an other", *). That words and numbers count, too, is safe.
NAME = re.compile(r'"((?:[^"]|"")*)"|([^\s,()"]+)')


def is_standby(setting: str, name: str) -> bool:
    """Whether a server with this setting takes sessions of this application for standbys (pure)."""
    listed = {quoted.replace('""', '"') or bare for quoted, bare in NAME.findall(setting)}
    return "*" in listed or name.lower() in {one.lower() for one in listed}


def require_no_standby(database: Database, name: str) -> None:
    """Raise `capture-not-set-up` where sessions of this application count as standbys."""
    with database.session() as connection, translated():
        row = connection.execute(SETTING).fetchone()
    if row is not None and is_standby(row[0], name):
        raise UserError(
            "capture-not-set-up",
            "the server takes a stream for a synchronous standby",
            detail=f"synchronous_standby_names is {row[0]}.",
            hint="Name the standbys there one by one, and none of them like our sessions.",
        )


# The server hears of us at least so often; it ends a session after wal_sender_timeout, 60 s.
STATUS_SECONDS = 5.0
# Whoever waits asks the server so often how far it is.
ASK_SECONDS = 0.25
# How long a server may take to begin, and the thread to end.
BEGIN_SECONDS, END_SECONDS = 60.0, 5.0


def unheard() -> None:
    """Nobody wants to hear of transactions that arrive."""


class Stream:
    """A session that begins at once and lasts until it fails or is closed.

    No more than `ceiling` bytes are kept. `heard` is called, in the stream's thread, when the first
    transaction arrives after somebody asked for `news`. The slot is moved by `acknowledge` only.
    Making one raises OSError or RuntimeError where the process may have no more files or threads.
    """

    def __init__(
        self,
        database: Database,
        slot: str,
        publication: str,
        *,
        ceiling: int,
        heard: Callable[[], None] = unheard,
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
        self._told = False
        self._stopped = False
        self._closed = False
        self._asked = False
        self._acknowledged = 0
        self._to_flush = 0
        self._said_at = 0.0
        self._progress_at = time.monotonic()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._poll = select.poll()
        self._thread = threading.Thread(target=self._run, name=f"headrace-{slot}", daemon=True)
        self._thread.start()

    def wait(self, upto: int, seconds: float) -> bool:
        """Wait until all that ends before a position has arrived.

        False if the stream has ended, or nothing came for so many seconds.
        """
        begun = time.monotonic()
        with self._changed:
            while self.reached < upto:
                silent_since = max(begun, self._progress_at)
                if self.failure is not None or time.monotonic() - silent_since > seconds:
                    return False
                self._asked = True
                self._wake()
                self._changed.wait(min(ASK_SECONDS, seconds))
        return True

    def news(self) -> int:
        """How far all has arrived; from now on `heard` is called once more."""
        self._told = False
        return self.reached

    def acknowledge(self, position: int) -> None:
        """Let the slot and the spool go of what is before a position, which is recorded as such."""
        self.spool.trim(position)
        with self._changed:
            if position > self._acknowledged:
                self._acknowledged = self._to_flush = position
        self._wake()

    def close(self) -> None:
        """End the session, if it has not; what was acknowledged is said before.

        A thread that does not end in time, because it still connects, ends later by itself.
        """
        self._stopped = True
        self._wake()
        self._thread.join(END_SECONDS)
        with self._changed:
            self._closed = True
            if self.failure is not None:
                self._let_go()

    def _let_go(self) -> None:
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
                    self._say(session)
                    self._listen(session)
                self._say(session)
            failure: HeadraceError = Transient("connection-lost", "the stream was closed")
        except HeadraceError as error:
            failure = error
        except psycopg.Error as error:
            failure = slot_fault(error)
        except OSError as error:
            failure = Unavailable("store-full", f"the stream cannot be kept on disk: {error}")
        except Exception as error:  # noqa: BLE001  whoever waits has to hear of it
            failure = InternalError("invariant", f"{type(error).__name__}: {error}")
        with self._changed:
            self.failure = failure
            self._changed.notify_all()
            if self._closed:
                self._let_go()
        self.heard()

    def _begin(self, session: PGconn) -> None:
        """Have the server stream; a command that it does not answer is not waited for for ever."""
        session.nonblocking = 0
        self._poll.register(session.socket, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        until = time.monotonic() + BEGIN_SECONDS
        self._require_no_standby()
        if not self._stopped:
            session.send_query(self._command)
        while not self._stopped:
            self._poll.poll(max(0.0, until - time.monotonic()) * 1000)
            self._hush()
            session.consume_input()
            if not session.is_busy():
                break
            if time.monotonic() > until:
                raise Transient("connection-lost", "the server does not begin to stream")
        if self._stopped:
            raise Transient("connection-lost", "the stream was closed")
        result = session.get_result()
        if result is None or result.status != ExecStatus.COPY_BOTH:
            raise _refused(result)
        # What came with the answer is not waited for.
        self._wake()

    def _say(self, session: PGconn) -> None:
        """Answer the server; the slot moves only where something was acknowledged since."""
        with self._changed:
            asks, self._asked = self._asked, False
            flushed, self._to_flush = self._to_flush, 0
        now = time.time()
        if flushed:
            self._require_no_standby()
            session.put_copy_data(status(self.reached, flushed, at=now))
        due = time.monotonic() - self._said_at >= STATUS_SECONDS
        if flushed or asks or due:
            session.put_copy_data(status(self.reached, at=now, asks=asks))
            session.flush()
            self._said_at = time.monotonic()

    def _require_no_standby(self) -> None:
        """Asked when a stream begins and whenever it flushes: settings are changed at any time."""
        require_no_standby(self._database, self._name)

    def _hush(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)

    def _listen(self, session: PGconn) -> None:
        """Wait for the server, or for one of us, and take all that has come."""
        self._poll.poll(STATUS_SECONDS * 1000)
        self._hush()
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
                    self._said_at = 0.0
        ended = self.spool.extend(messages)
        if messages:
            self._progress_at = time.monotonic()
        if self.spool.size > self.ceiling:
            raise Unavailable(
                "store-full",
                f"more than {self.ceiling >> 20} MB were streamed and not taken in",
            )
        # Transactions are sent in the order in which they end.
        reached = max(reached, ended)
        if reached > self.reached:
            with self._changed:
                self.reached, self._progress_at = reached, time.monotonic()
                self._changed.notify_all()
        if ended and not self._told:
            self._told = True
            self.heard()


def _end(session: PGconn) -> HeadraceError:
    """Why the server ended the session."""
    return _refused(session.get_result())


def _refused(result: PGresult | None) -> HeadraceError:
    if result is not None and result.status == ExecStatus.FATAL_ERROR:
        return slot_fault(psycopg.errors.error_from_result(result))
    return Transient("connection-lost", "the server ended the stream")
