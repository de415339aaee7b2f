"""Workers of a daemon under two databases: quotas, what may be borrowed beyond them, priorities."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Condition

import psycopg
import pytest

import headrace
from headrace.catalog import new_relation_id
from headrace.embedded import EmbeddedServer
from headrace.engine.steps import ComputeStage, Step
from headrace.ingest.ingest import ingest
from headrace.refresh.epochs import lacks
from tests.daemon.running import PATIENCE, Running
from tests.databases import extra_database
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e


@pytest.fixture
def crm_dsn(server: EmbeddedServer) -> Iterator[str]:
    with extra_database(server) as dsn:
        yield dsn


@pytest.fixture
def crm(crm_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(crm_dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE customer (id int)")
        yield connection


class Gate:
    """Holds refreshes up in the middle of their computation until they are let through."""

    def __init__(self, project: headrace.Headrace) -> None:
        tables = project._engine.catalog.state().stream_tables
        self._names = {one.relation: one.name for one in tables}
        self._changed = Condition()
        self._through: set[str] = set()
        self.started: list[str] = []
        project._engine.watch = self._watch

    def _watch(self, when: str, step: Step) -> None:
        if when != "before" or not isinstance(step, ComputeStage):
            return
        name = self._names[step.stage.relation[: len(new_relation_id())]]
        with self._changed:
            if name not in self.started:
                self.started.append(name)
            assert self._changed.wait_for(lambda: name in self._through, PATIENCE)

    def let_through(self, *names: str) -> None:
        with self._changed:
            self._through.update(names or self._names.values())
            self._changed.notify_all()

    def held(self, database: str) -> list[str]:
        """The tables of a database that are under way now."""
        with self._changed:
            return [n for n in self.started if n[0] == database and n not in self._through]


def make(project: headrace.Headrace, sql: psycopg.Connection, home: int, crm: int) -> None:
    """So many stream tables over each of the two databases, called h… and c…"""
    sql.execute("CREATE TABLE orders (id int)")
    queries = {f"h{i}": f"SELECT count(*) + {i} AS n FROM orders" for i in range(home)}
    queries |= {f"c{i}": f"SELECT count(*) + {i} AS n FROM crm.public.customer" for i in range(crm)}
    project.create_stream_tables(
        {name: {"query": query, "schedule": "20ms"} for name, query in queries.items()}
    )


def test_quotas_and_what_is_borrowed_beyond_them(
    project: headrace.Headrace, sql: psycopg.Connection, crm: psycopg.Connection, crm_dsn: str
) -> None:
    project.attach("crm", crm_dsn, quota=2)
    make(project, sql, home=6, crm=3)
    project.alter_database("home", quota=2)
    assert [(one.alias, one.quota) for one in project.databases()] == [("home", 2), ("crm", 2)]
    project.set("workers", 4)
    gate = Gate(project)
    with Running(project) as running:
        sql.execute("INSERT INTO orders VALUES (1)")
        running.until(lambda: len(gate.held("h")) == 3)
        # The fourth worker is free, and three tables wait: they may not have it.
        crm.execute("INSERT INTO customer VALUES (1)")
        running.until(lambda: len(gate.held("c")) == 1)
        assert len(gate.held("h")) == 3, "one and a half times its quota"
        # What was borrowed comes back with the first refresh that ends.
        gate.let_through(gate.held("h")[0])
        running.until(lambda: len(gate.held("c")) == 2)
        assert len([name for name in gate.started if name[0] == "h"]) == 3
        gate.let_through()
        names = [f"h{i}" for i in range(6)] + [f"c{i}" for i in range(3)]
        running.until(lambda: sorted(gate.started) == sorted(names))
        running.until(lambda: all(project.history(name)[0].rows_inserted for name in names))
    for i in range(6):
        assert_served(project, sql, f"h{i}")
    assert sql.execute("SELECT n FROM c2").fetchone() == (3,)


def test_shares_are_kept(
    project: headrace.Headrace, sql: psycopg.Connection, crm: psycopg.Connection, crm_dsn: str
) -> None:
    project.attach("crm", crm_dsn, share=3)
    make(project, sql, home=4, crm=4)
    project.set("workers", 4)
    gate = Gate(project)
    engine = project._engine
    # All tables wait before the daemon decides for the first time.
    sql.execute("INSERT INTO orders VALUES (1)")
    crm.execute("INSERT INTO customer VALUES (1)")
    with engine.writing() as lease:
        ingest(engine, engine.catalog.state(), lease.fence)
    with Running(project) as running:
        running.until(lambda: len(gate.started) == 4)
        assert (len(gate.held("h")), len(gate.held("c"))) == (1, 3)
        # Whichever ends, the next of its own database follows it.
        gate.let_through(gate.held("h")[0])
        running.until(lambda: len(gate.started) == 5)
        assert (len(gate.held("h")), len(gate.held("c"))) == (1, 3)
        gate.let_through(gate.held("c")[0])
        running.until(lambda: len(gate.started) == 6)
        assert (len(gate.held("h")), len(gate.held("c"))) == (1, 3)
        # What is unused is lent, up to half as much again, although another table of home waits.
        crm_tables = [f"c{i}" for i in range(4)]
        gate.let_through(*crm_tables)
        running.until(lambda: len(gate.held("h")) == 2)
        crm.execute("INSERT INTO customer VALUES (2)")
        running.until(lambda: read(crm_tables, sql) == [2, 3, 4, 5])
        assert len(gate.held("h")) == 2
        gate.let_through()
        running.until(lambda: read([f"h{i}" for i in range(4)], sql) == [1, 2, 3, 4])


def read(names: list[str], sql: psycopg.Connection) -> list[int]:
    """The number that each of the stream tables shows."""
    return [n for name in names for (n,) in sql.execute(f"TABLE {name}").fetchall()]


def test_a_higher_priority_comes_first(
    project: headrace.Headrace, sql: psycopg.Connection, crm: psycopg.Connection, crm_dsn: str
) -> None:
    project.attach("crm", crm_dsn)
    make(project, sql, home=3, crm=2)
    project.alter_database("crm", priority=1)
    project.set("workers", 1)
    gate = Gate(project)

    def all_lack() -> bool:
        state = project._engine.catalog.state()
        waiting = [one for one in state.stream_tables if one.name not in gate.started]
        return all(lacks(state, one) for one in waiting)

    with Running(project) as running:
        sql.execute("INSERT INTO orders VALUES (1)")
        running.until(lambda: len(gate.held("h")) == 1)
        crm.execute("INSERT INTO customer VALUES (1)")
        running.until(all_lack)
        gate.let_through()
        running.until(lambda: len(gate.started) == 5)
    assert [name[0] for name in gate.started] == ["h", "c", "c", "h", "h"]


def test_claims_are_altered_and_refused(
    project: headrace.Headrace, crm_dsn: str, crm: psycopg.Connection
) -> None:
    project.alter_database("home", priority=3)
    project.attach("crm", crm_dsn, share=2, quota=5, priority=-1)
    project.alter_database("crm", quota=None)
    claims = {one.alias: (one.share, one.quota, one.priority) for one in project.databases()}
    assert claims == {"home": (1, None, 3), "crm": (2, None, -1)}
    for wrong in ({"quota": 0}, {"priority": 10**9}, {"share": 0}, {"quota": 1.5}, {}):
        with pytest.raises(headrace.UserError) as caught:
            project.alter_database("crm", **wrong)  # type: ignore[arg-type]
        assert caught.value.code == "invalid-option"
    with pytest.raises(headrace.UserError) as caught:
        project.alter_database("other", quota=1)
    assert caught.value.code == "unknown-database"
    with pytest.raises(headrace.UserError):
        project.attach("crm", crm_dsn, quota=0)
