"""Who waits for whom: lock waits of the application that are due to Headrace."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import psycopg

from bench.soak.blame import LONG, Wait, waits_for_headrace
from bench.soak.site import OWNER, RUNTIME, Site, Sql

INTERVAL = 0.2
# Sessions of the soak have names of their own; all others of these two roles are Headrace's.
WAITING = """
SELECT pid, application_name, usename, query, extract(epoch FROM query_start)::float8,
       CASE WHEN wait_event_type = 'Lock' THEN pg_blocking_pids(pid) ELSE '{}' END
FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
"""


@dataclass(frozen=True)
class Session:
    """A session as pg_stat_activity shows it."""

    pid: int
    name: str
    role: str
    query: str
    started: float
    blockers: frozenset[int]

    @property
    def is_headrace(self) -> bool:
        return self.role in (OWNER, RUNTIME) and not self.name.startswith("soak")

    @property
    def is_application(self) -> bool:
        return self.name.startswith("soak") and self.name != "soak watch"


@dataclass
class Held:
    """A statement seen waiting because of Headrace, from `begin` to `end` as far as was seen."""

    begin: float
    end: float
    session: str
    statement: str
    blocker: str

    @property
    def longest(self) -> float:
        """The wait may have begun just after the look before, and ended just before the next."""
        return self.end - self.begin + 2 * INTERVAL


def sessions(connection: Sql) -> list[Session]:
    """Return all sessions of the database, each with those that it waits for."""
    rows = connection.execute(WAITING).fetchall()
    return [Session(*row[:5], frozenset(row[5])) for row in rows]


class LockWatch(threading.Thread):
    """Looks at all lock waits some times a second."""

    def __init__(self, site: Site) -> None:
        super().__init__(name="lock watch")
        self._site = site
        self._held: dict[tuple[int, float], Held] = {}
        self._stop_now = threading.Event()
        self.others = 0

    @property
    def waits(self) -> tuple[Wait, ...]:
        """The waits that may have lasted more than a second."""
        return tuple(
            Wait(one.begin, one.longest, one.session, one.statement, one.blocker)
            for one in list(self._held.values())
            if one.longest > LONG
        )

    def stop(self) -> None:
        self._stop_now.set()

    def run(self) -> None:
        while not self._stop_now.is_set():
            try:
                with self._site.connect(name="soak watch") as connection:
                    while not self._stop_now.wait(INTERVAL):
                        now = self._site.clock()
                        self.note(sessions(connection), now)
            except psycopg.Error:
                self._stop_now.wait(0.5)

    def note(self, sessions: list[Session], now: float) -> None:
        known = {session.pid: session for session in sessions}
        blockers = {session.pid: session.blockers for session in sessions if session.blockers}
        headrace = {session.pid for session in sessions if session.is_headrace}
        for session in sessions:
            if not (session.is_application and session.blockers):
                continue
            if waits_for_headrace(session.pid, blockers, headrace):
                first = next((known[p] for p in session.blockers if p in known), None)
                blocker = "?" if first is None else f"{first.name}: {first.query[:200]}"
                held = self._held.setdefault(
                    (session.pid, session.started),
                    Held(now, now, session.name, session.query[:200], blocker),
                )
                held.end = now
            else:
                self.others += 1
