"""What keeps the views fresh under a load: Headrace's daemon, or PostgreSQL by itself.

Each subject has a server, a database and a folder of its own, so none pays for another.
"""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg
from psycopg import sql

import headrace
from bench.load.options import Options
from bench.load.shop import VIEWS, Sql, fill
from bench.soak.daemon import Daemon
from bench.soak.site import NO_SPARK
from bench.tpch.postgres import tune
from bench.workload.answers import answers
from fuzz.judge import difference
from headrace.embedded import EmbeddedServer

SCHEDULE = "1s"
# Seconds within which a daemon serves, sources are in their mode, and all tables are fresh.
PATIENCE = 900.0
# Materialized views refreshed at once: as many as a daemon's workers, see the setting.
REFRESHERS = 4


class Subject:
    """A server with the filled source tables; use it in a `with`."""

    def __init__(self, name: str, options: Options) -> None:
        self.name = name
        self.options = options
        self.home = Path()
        self.dsn = ""
        self.closing = ExitStack()
        self.tables: list[str] = list(VIEWS)

    @property
    def daemon_pid(self) -> int | None:
        return None

    def __enter__(self) -> Subject:
        folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
        self.closing.callback(lambda: shutil.rmtree(folder, ignore_errors=True))
        try:
            self.home = folder / "home"
            tune(self.home)
            server = self.closing.enter_context(EmbeddedServer.open(self.home))
            self.dsn = server.dsn
            with self.connect() as connection:
                fill(connection, self.options.orders)
            self.set_up()
        except BaseException:
            self.closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.close()

    def connect(self) -> Sql:
        return psycopg.connect(self.dsn, autocommit=True, application_name="load control")

    def set_up(self) -> None:
        """Make the views, and begin to keep them fresh."""
        raise NotImplementedError

    def problems(self) -> list[str]:
        """Return what went wrong so far."""
        return []

    def refreshes(self) -> Counter[str]:
        """Return how many refreshes there were so far, by kind."""
        return Counter()

    def taken_until(self) -> float | None:
        """Return the moment up to which changes are taken in, where there is such a step."""
        return None

    def differences(self) -> list[str] | None:
        """Return where the views are not PostgreSQL's own answers; None if that is not asked."""
        return None


class StreamTables(Subject):
    """Stream tables under `headrace up`, sources captured in one mode."""

    def __init__(self, mode: str, options: Options) -> None:
        super().__init__(mode, options)
        self._began = time.monotonic()
        self._daemon: Daemon | None = None
        self._project: headrace.Headrace | None = None

    @property
    def daemon_pid(self) -> int | None:
        return None if self._daemon is None else self._daemon.pid

    def set_up(self) -> None:
        project = headrace.connect(home=self.home, spark=NO_SPARK)
        self._project = self.closing.enter_context(project)
        project.set("cdc_mode", self.name)
        places = ["--home", str(self.home)]
        daemon = Daemon(places, self.home.parent, lambda: time.monotonic() - self._began)
        self._daemon = daemon
        self.closing.callback(daemon.close)
        self._until(lambda: daemon.serving or bool(daemon.exits), "the daemon does not serve")
        project.create_stream_tables(
            {
                name: {"query": view.query, "schedule": SCHEDULE, "key": list(view.key)}
                for name, view in VIEWS.items()
            }
        )
        self._until(self._captured, f"sources are not captured in mode {self.name}")

    def _captured(self) -> bool:
        with self.connect() as connection:
            rows = connection.execute("SELECT mode, status FROM headrace.sources").fetchall()
        return bool(rows) and set(rows) == {(self.name.upper(), "ACTIVE")}

    def _until(self, met: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not met():
            if time.monotonic() > deadline:
                raise SystemExit("\n".join([otherwise, *self.problems()]))
            time.sleep(0.2)
        if self.problems():
            raise SystemExit("\n".join(self.problems()))

    def problems(self) -> list[str]:
        found: list[str] = []
        if self._daemon is not None:
            found += [f"the daemon ended with {one.code}: {one.said}" for one in self._daemon.exits]
        with self.connect() as connection:
            if connection.execute("SELECT to_regclass('headrace.stream_tables')").fetchone() == (
                None,
            ):
                return found
            rows = connection.execute(
                "SELECT name, status, reason FROM headrace.stream_tables"
                " WHERE status IN ('SUSPENDED', 'ERROR')"
            ).fetchall()
        return found + [f"{name} is {status}: {reason}" for name, status, reason in rows]

    def refreshes(self) -> Counter[str]:
        with self.connect() as connection:
            rows = connection.execute(
                "SELECT mode, count(*) FROM headrace.refreshes GROUP BY mode"
            ).fetchall()
            epochs = connection.execute("SELECT max(epoch) FROM headrace.databases").fetchone()
        return Counter({**dict(rows), "epochs": epochs[0] if epochs else 0})

    def taken_until(self) -> float | None:
        with self.connect() as connection:
            row = connection.execute("SELECT max(cut_at) FROM headrace.databases").fetchone()
        if row is None or row[0] is None:
            return None
        at: float = row[0].timestamp()
        return time.monotonic() - (time.time() - at)

    def differences(self) -> list[str]:
        """Wait until the daemon has caught up by itself, then compare all stream tables."""
        assert self._project is not None
        deadline = time.monotonic() + PATIENCE
        for name in VIEWS:
            self._project.wait_fresh(name, max(1.0, deadline - time.monotonic()))
        found = []
        with self.connect() as connection:
            for name, view in VIEWS.items():
                served, right = answers(self._project, connection, name, view.query)
                if served != right:
                    found.append(f"{name}: {difference(served, right)}")
        return found


class MaterializedViews(Subject):
    """PostgreSQL's materialized views, refreshed one after the other without a pause."""

    def __init__(self, options: Options) -> None:
        super().__init__("materialized_views", options)
        self._stop_now = threading.Event()
        self._done: Counter[str] = Counter()
        self._errors: list[str] = []
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()

    def set_up(self) -> None:
        with self.connect() as connection:
            for name, view in VIEWS.items():
                connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {view.query}".encode())
                key = ", ".join(view.key)
                connection.execute(f"CREATE UNIQUE INDEX ON {name} ({key})".encode())
                self._waiting.put(name)
        threads = [threading.Thread(target=self._refresh) for _ in range(REFRESHERS)]
        for thread in threads:
            self.closing.callback(thread.join)
        self.closing.callback(self._stop_now.set)
        for thread in threads:
            thread.start()

    def _refresh(self) -> None:
        with self.connect() as connection:
            while not self._stop_now.is_set():
                name = self._waiting.get()
                try:
                    connection.execute(
                        sql.SQL("REFRESH MATERIALIZED VIEW {}").format(sql.Identifier(name))
                    )
                except psycopg.Error as error:
                    self._errors.append(f"{name}: {error}")
                    return
                self._done["FULL"] += 1
                self._waiting.put(name)

    def problems(self) -> list[str]:
        return self._errors

    def refreshes(self) -> Counter[str]:
        return Counter(self._done)


class IncrementalViews(Subject):
    """Views that the extension pg_ivm maintains inside of the transactions that write."""

    def __init__(self, options: Options) -> None:
        super().__init__("pg_ivm", options)
        self.refused: dict[str, str] = {}

    def set_up(self) -> None:
        with self.connect() as connection:
            connection.execute("CREATE EXTENSION pg_ivm")
            row = connection.execute(
                "SELECT oid::regproc FROM pg_proc WHERE proname = 'create_immv'"
            ).fetchone()
            assert row is not None
            for name, view in VIEWS.items():
                try:
                    connection.execute(f"SELECT {row[0]}(%s, %s)".encode(), (name, view.query))
                except psycopg.Error as error:
                    self.refused[name] = str(error).splitlines()[0]
        self.tables = [name for name in VIEWS if name not in self.refused]


def offers_pg_ivm(dsn: str) -> bool:
    """Return whether a server has the files of pg_ivm."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_ivm'"
        ).fetchone()
    return found is not None
