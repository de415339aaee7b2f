"""The application of a soak at work: writers, and a reader who checks every snapshot it sees."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

import psycopg

from bench.soak.blame import LONG, Failure
from bench.soak.shop import INVARIANTS
from bench.soak.site import APPLICATION, Site, Sql
from bench.soak.transactions import Habits, Transaction

# Seconds between two transactions of a writer, on average.
PACE = 0.25
# Seconds that a transaction may take before a pause is given up.
PATIENCE = 120.0


class Worker(threading.Thread):
    """A thread that repeats one act until it is stopped, and can be paused between two."""

    def __init__(self, site: Site, name: str) -> None:
        super().__init__(name=name)
        self.site = site
        self.statements = 0
        self.slow: list[tuple[float, float]] = []
        self.slowest = 0.0
        self.failures: list[Failure] = []
        self.connection: Sql | None = None
        self._last = "connect"
        self._opened = 0.0
        self._stop_now = threading.Event()
        self._go = threading.Event()
        self._go.set()
        self._idle = threading.Event()

    def act(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        while not self._stop_now.is_set():
            if not self._go.is_set():
                self._idle.set()
                self._go.wait(0.1)
                continue
            self._idle.clear()
            try:
                self.act()
            except psycopg.Error as error:
                self.failures.append(
                    Failure(
                        self.site.clock(),
                        self._opened,
                        self._last,
                        error.sqlstate,
                        str(error)[:300],
                    )
                )
                self._disconnect()
                self._stop_now.wait(0.5)
        self._disconnect()
        self._idle.set()

    def pause(self) -> None:
        self._go.clear()

    def idle(self) -> bool:
        """Wait until the last act before a pause has ended; whether it has."""
        return self._idle.wait(PATIENCE)

    def go_on(self) -> None:
        self._idle.clear()
        self._go.set()

    def stop(self) -> None:
        self._stop_now.set()
        self._go.set()

    def timed(self, text: str, act: Callable[[], object]) -> None:
        """Do one statement, and note how long it took."""
        self._last = text
        began = self.site.clock()
        try:
            act()
        finally:
            ended = self.site.clock()
            self.slowest = max(self.slowest, ended - began)
            if ended - began > LONG:
                self.slow.append((began, ended))
        self.statements += 1

    def session(self) -> Sql:
        if self.connection is None or self.connection.closed:
            self._last, self._opened = "connect", self.site.clock()
            self.connection = self.connect()
        return self.connection

    @property
    def session_name(self) -> str:
        return f"soak {self.name}"

    def connect(self) -> Sql:
        return self.site.connect(APPLICATION, self.session_name)

    def _disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def wait(self, seconds: float) -> None:
        self._stop_now.wait(seconds)


class Writer(Worker):
    """Commits transactions of all forms, at a bounded pace."""

    def __init__(self, site: Site, number: int) -> None:
        super().__init__(site, f"writer {number}")
        random = Random(f"{site.options.seed}/{number}")  # noqa: S311  as the plan
        self._random = random
        self._habits = Habits(number, site.options.writers, random)
        self._transactions = iter(self._habits)
        self._prepared: list[str] = []
        self._gids = 0

    def act(self) -> None:
        session = self.session()
        while self._prepared:
            self._finish(session, self._prepared[0])
        self._commit(session, next(self._transactions))
        self.wait(self._random.expovariate(1 / PACE))

    def _commit(self, session: Sql, transaction: Transaction) -> None:
        self.timed("BEGIN", lambda: session.execute("BEGIN"))
        for statement in transaction.statements:
            self.timed(
                statement.text,
                lambda one=statement: session.execute(one.text.encode(), one.parameters or None),
            )
            if statement.pause:
                self.wait(statement.pause)
        if transaction.end == "PREPARE":
            self._gids += 1
            gid = f"soak_{self._habits.number}_{self._gids}"
            # Noted first: a session that is cut leaves it open whether it was prepared or not.
            self._prepared.append(gid)
            self.timed("PREPARE", lambda: session.execute(f"PREPARE TRANSACTION '{gid}'".encode()))
            self.wait(self._random.random())
            self._finish(session, gid)
            return
        self.timed(transaction.end, lambda: session.execute(transaction.end.encode()))
        self._remember(transaction)

    def _remember(self, transaction: Transaction) -> None:
        """Keep which pairs of entries there are; what was perhaps committed is not counted."""
        if transaction.end != "COMMIT":
            return
        for statement in transaction.statements:
            if statement.text.startswith("DELETE FROM entries"):
                self._habits.pairs.pop(0)
        if transaction.statements[-1].text.startswith("INSERT INTO entries"):
            self._habits.pairs.append(int(str(transaction.statements[-1].parameters[0])))

    def _finish(self, session: Sql, gid: str) -> None:
        known = session.execute("SELECT 1 FROM pg_prepared_xacts WHERE gid = %s", (gid,))
        if known.fetchone() is not None:
            end = "COMMIT" if self._random.random() < 0.8 else "ROLLBACK"
            text = f"{end} PREPARED '{gid}'".encode()
            self.timed(f"{end} PREPARED", lambda: session.execute(text))
        self._prepared.remove(gid)


class Reader(Worker):
    """Looks at what is served all the time: every snapshot has to make sense."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "reader")
        self.wrong: list[tuple[float, str]] = []
        self.snapshots = 0

    def connect(self) -> Sql:
        return self.site.connect(name=self.session_name)

    def act(self) -> None:
        session = self.session()
        for what, query in INVARIANTS.items():
            cursor = session.cursor()
            self.timed(query, lambda q=query, c=cursor: c.execute(q.encode()))
            if cursor.fetchone() != (True,):
                self.wrong.append((round(self.site.clock(), 1), what))
        self.snapshots += 1
        self.wait(0.5)
