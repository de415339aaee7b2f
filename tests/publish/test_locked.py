"""A reader that keeps a served table locked holds up nobody who publishes another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import headrace
from headrace.catalog import Change
from headrace.catalog.records import Refresh, StreamTable
from headrace.lifecycle.planned_table import TableRequest
from headrace.publish.publish import Advanced, publish
from headrace.relations.visible_change import VisibleChange
from headrace.store import WEIGHT
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres


@pytest.fixture
def project(dsn: str, tmp_path: Path) -> Iterator[headrace.Headrace]:
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        headrace.connect(dsn, home=tmp_path) as opened,
    ):
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        put_tables(opened, *(TableRequest(name, "SELECT id FROM t") for name in ("locked", "free")))
        yield opened


def advanced(table: StreamTable, number: int) -> Advanced:
    now = datetime.now(UTC)
    change = VisibleChange.of(
        pa.table({WEIGHT: pa.array([1], pa.int64()), "id": pa.array([number], pa.int64())})
    )
    refresh = Refresh(
        table=table.relation,
        epoch=table.epoch + 1,
        mode="FULL",
        reason="asked for",
        rows_inserted=1,
        rows_deleted=0,
        phases={},
        spark_jobs=0,
        started_at=now,
        finished_at=now,
        versions={},
    )
    return Advanced(table, (), change, refresh, dict.fromkeys(table.inputs, 1), now)


@pytest.mark.parametrize("statement", ["LOCK TABLE locked IN SHARE MODE", "TABLE locked FOR SHARE"])
def test_a_table_that_a_reader_has_locked(
    project: headrace.Headrace, dsn: str, statement: str
) -> None:
    engine = project._engine
    with engine.serving(10) as lease:
        # Served already, and with a row that goes.
        state = engine.catalog.state()
        tables = {table.name: table for table in state.stream_tables}
        first = tuple(_at_epoch_1(tables[name]) for name in ("locked", "free"))
        engine.catalog.commit(Change(put=first), fence=lease.fence)
        state = engine.catalog.state()
        locked, _ = first
        publish(engine, (advanced(locked, 1),), state, fence=lease.fence)
        state = engine.catalog.state()
        again = state.stream_table("public", "locked")
        assert again is not None
        taking = advanced(again, 1)
        gone = pa.table({WEIGHT: pa.array([-1], pa.int64()), "id": pa.array([1], pa.int64())})
        taking = _with(taking, VisibleChange.of(gone))
        failures: list[BaseException] = []

        def publish_locked() -> None:
            try:
                publish(engine, (taking,), state, fence=lease.fence)
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        with psycopg.connect(dsn) as reader:
            reader.execute(statement)
            thread = threading.Thread(target=publish_locked)
            thread.start()
            for number in range(3):
                current = engine.catalog.state().stream_table("public", "free")
                assert current is not None
                publish(engine, (advanced(current, number),), state, fence=lease.fence)
            assert thread.is_alive(), failures
        thread.join()
        assert failures == []
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM free").fetchone() == (3,)
        assert connection.execute("SELECT count(*) FROM locked").fetchone() == (0,)


def _at_epoch_1(table: StreamTable) -> StreamTable:
    return replace(table, epoch=1, frontier=dict.fromkeys(table.inputs, 1))


def _with(one: Advanced, change: VisibleChange) -> Advanced:
    return replace(one, change=change)
