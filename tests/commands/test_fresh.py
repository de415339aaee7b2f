"""Waiting for a table to be fresh, with what a daemon does done by hand: no Spark is needed.

With no time to wait, every call reports where the table stands: it returns, or it is too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import headrace
from headrace.catalog import Change
from headrace.catalog.records import Lease, StreamTable
from headrace.commands import fresh
from headrace.commands.command import Command
from headrace.commands.commands import RefreshTable
from headrace.engine import HOME, Engine
from headrace.errors import Transient, UserError
from headrace.ingest.ingest import ingest
from headrace.lifecycle.planned_table import TableRequest
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

QUERIES = {
    "totals": "SELECT region, sum(amount) AS total FROM orders GROUP BY region",
    "best": "SELECT region FROM totals WHERE total > 10",
}


@dataclass
class Hands:
    """A daemon's work, one piece at a time, under the lease of one that serves."""

    engine: Engine
    lease: Lease

    def cut(self) -> None:
        """Take in what is new in the sources."""
        ingest(self.engine, self.engine.catalog.state(), self.lease.fence)

    def publish(self, name: str) -> int:
        """Bring a table to all that is there for it, with a row more in its log."""
        engine, state = self.engine, self.engine.catalog.state()
        table = self.table(name)
        epoch = engine.catalog.next_epoch()
        relation = state.relation(table.relation)
        frontier = {
            one: state.database(HOME).epoch if one != table.relation else epoch
            for one in table.inputs
        }
        for one in table.inputs:
            origin = state.origin(one)
            if isinstance(origin, StreamTable):
                frontier[one] = origin.epoch
        names = [one for one, _ in relation.columns]
        values = {one: pa.array([None], type_.arrow) for one, type_ in relation.columns}
        row = pa.table({"_weight": pa.array([1], pa.int64()), **values}).select(["_weight", *names])
        pin = engine.store.append(relation.id, relation.pin, epoch, row)
        done = replace(table, epoch=epoch, frontier=frontier)
        self.put(replace(relation, pin=pin), done)
        return epoch

    def put(self, *records: object) -> None:
        self.engine.catalog.commit(Change(put=records), fence=self.lease.fence)  # type: ignore[arg-type]

    def table(self, name: str) -> StreamTable:
        found = self.engine.catalog.state().stream_table("public", name)
        assert found is not None
        return found


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount bigint)")
        connection.execute("INSERT INTO orders VALUES (1, 'north', 10)")
        yield connection


@pytest.fixture
def reader(dsn: str, tmp_path: Path, sql: psycopg.Connection) -> Iterator[headrace.Headrace]:
    """The project as the one who waits has opened it."""
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        scheduled = {"schedule": "1s"}
        put_tables(opened, *(TableRequest.of(name, q, scheduled) for name, q in QUERIES.items()))
        yield opened


@pytest.fixture
def hands(dsn: str, tmp_path: Path, reader: headrace.Headrace) -> Iterator[Hands]:
    """A daemon in another process would have opened the project so; both tables are published."""
    with (
        headrace.connect(dsn=dsn, home=tmp_path) as serving,
        serving._engine.serving(0) as lease,
    ):
        made = Hands(serving._engine, lease)
        made.cut()
        made.publish("totals")
        made.publish("best")
        yield made


def behind(reader: headrace.Headrace, name: str = "best") -> str:
    """Which tables are behind now; the table waited for must be."""
    with pytest.raises(Transient) as caught:
        reader.wait_fresh(name, timeout=0)
    assert caught.value.code == "wait-timeout"
    return caught.value.detail or ""


def test_every_step_from_the_commit_to_the_table(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    assert reader.wait_fresh("best", timeout=0) == hands.table("best").epoch
    sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
    assert behind(reader) == "Behind are public.best."
    hands.cut()
    assert behind(reader) == "Behind are public.totals, public.best."
    hands.publish("totals")
    assert behind(reader) == "Behind are public.best."
    assert reader.wait_fresh("totals", timeout=0) == hands.table("totals").epoch
    epoch = hands.publish("best")
    assert reader.wait_fresh("best", timeout=0) == epoch


def test_a_transaction_that_is_open_is_not_waited_for(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    with sql.transaction():
        sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
        assert reader.wait_fresh("best", timeout=0) == hands.table("best").epoch
    behind(reader)


def test_a_commit_that_touches_no_source_is_not_waited_for(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE other AS SELECT 1")
    assert reader.wait_fresh("best", timeout=0) == hands.table("best").epoch


def test_a_truncate_is_waited_for(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    sql.execute("TRUNCATE orders")
    behind(reader)
    hands.cut()
    hands.publish("totals")
    epoch = hands.publish("best")
    assert reader.wait_fresh("best", timeout=0) == epoch


def test_a_cut_between_two_looks_is_no_pending_change_and_no_proof(
    reader: headrace.Headrace,
    hands: Hands,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cut empties the buffer after the state was read: an empty buffer proves nothing."""
    sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
    asked = fresh.has_pending_changes

    def late(*given: object) -> bool:
        hands.cut()
        return asked(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(fresh, "has_pending_changes", late)
    assert behind(reader) == "Behind are public.best."


def test_the_error_names_the_failed_table(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
    hands.cut()
    failed = replace(hands.table("totals"), status="ERROR", reason="division by zero")
    hands.put(failed)
    assert "public.totals failed: division by zero." in behind(reader)


def test_a_table_that_needs_a_suspended_one_is_not_waited_for(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    hands.put(replace(hands.table("totals"), status="SUSPENDED", reason="by hand"))
    assert reader.wait_fresh("best", timeout=0), "it lacks nothing"
    sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
    with pytest.raises(UserError) as caught:
        reader.wait_fresh("best")
    assert (caught.value.code, caught.value.detail) == ("table-suspended", "by hand")


def test_an_unknown_table(reader: headrace.Headrace) -> None:
    with pytest.raises(UserError) as caught:
        reader.wait_fresh("nothing")
    assert caught.value.code == "unknown-stream-table"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("best", {"schedule": None}),
        ("totals", {"schedule": None}),
        ("best", {"options": {"tier": "cold"}}),
        ("best", {"options": {"tier": "frozen"}}),
        ("best", {"options": {"tier": "auto"}}),
    ],
)
def test_where_no_schedule_would_a_refresh_is_asked_for(
    reader: headrace.Headrace,
    hands: Hands,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    changed: dict[str, object],
) -> None:
    asked: list[Command[object]] = []
    monkeypatch.setattr(fresh, "submit", lambda engine, command: asked.append(command))
    hands.put(replace(hands.table(name), **changed))  # type: ignore[arg-type]
    reader.wait_fresh("best", timeout=0)
    assert asked == [], "it lacks nothing"
    sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
    hands.cut()
    reader.wait_fresh("best", timeout=0)
    assert asked == [RefreshTable("public", "best")]


def test_a_calculated_table_follows_its_readers(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    hands.put(replace(hands.table("totals"), schedule="calculated"))
    sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
    hands.cut()
    assert behind(reader) == "Behind are public.totals, public.best."


def test_own_and_inherited_lag(
    reader: headrace.Headrace, hands: Hands, sql: psycopg.Connection
) -> None:
    def lags() -> dict[str, tuple[bool, bool]]:
        """Whether each table has a lag of its own, and one that it inherits."""
        return {one.name: (bool(one.lag_own), bool(one.lag_inherited)) for one in reader.status()}

    assert lags() == {"public.best": (False, False), "public.totals": (False, False)}
    sql.execute("INSERT INTO orders VALUES (2, 'south', 20)")
    hands.cut()
    assert lags() == {"public.best": (False, True), "public.totals": (True, False)}
    cut_at = hands.engine.catalog.state().database(HOME).cut_at
    sql.execute("INSERT INTO orders VALUES (3, 'south', 20)")
    hands.cut()
    (totals,) = (one for one in reader.status() if one.name == "public.totals")
    newest = hands.engine.catalog.state().database(HOME).cut_at
    assert cut_at is not None and newest is not None and totals.lag_own is not None
    assert totals.lag_own >= newest - cut_at, "since the older of two cuts"
    hands.publish("totals")
    hands.publish("best")
    assert lags() == {"public.best": (False, False), "public.totals": (False, False)}
