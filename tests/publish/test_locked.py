"""A reader that keeps a served table locked holds up nobody who publishes another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import headrace
from headrace.catalog import Change, Transaction
from headrace.catalog.records import Refresh, StreamTable
from headrace.engine import Engine
from headrace.lifecycle.planned_table import TableRequest
from headrace.publish.publish import Advanced, publish
from headrace.publish.reindex import build_beside
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


LOCKED = """
SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.pid = pg_backend_pid() AND l.mode = 'AccessExclusiveLock' AND c.relkind = 'r'
    AND (c.relname = 'parted' OR c.oid::text = ANY (%s))
"""


def test_readers_are_locked_out_last(dsn: str, tmp_path: Path) -> None:
    """Neither a new range nor a partition that got empty, while other tables are written."""
    options = {"partition_by": "range(id, 10)", "partition_drop_empty": True}
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        headrace.connect(dsn, home=tmp_path) as project,
    ):
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        request = TableRequest("parted", "SELECT id FROM t", options=options)
        put_tables(project, request)
        engine = project._engine
        partitions = (
            "SELECT array_agg(inhrelid::text) FROM pg_inherits WHERE inhparent = 'parted'::regclass"
        )
        with engine.serving(10) as lease:
            table = _first(engine)
            engine.catalog.commit(Change(put=(_at_epoch_1(table),)), fence=lease.fence)
            for rows in ({5: 1, None: 1}, {5: -1, 15: 1}):
                (known,) = connection.execute(partitions).fetchall()
                locked: list[object] = []

                def note(
                    transaction: Transaction,
                    locked: list[object] = locked,
                    known: tuple[object, ...] = known,
                ) -> None:
                    locked.extend(transaction.execute(LOCKED, known).fetchall())

                change = VisibleChange.of(
                    pa.table(
                        {
                            WEIGHT: pa.array(rows.values(), pa.int64()),
                            "id": pa.array(rows.keys(), pa.int64()),
                        }
                    )
                )
                one = _with(advanced(_first(engine), 0), change)
                state = engine.catalog.state()
                publish(engine, (one,), state, fence=lease.fence, serve_besides=note)
                assert locked == [(0,)]
        bounds = connection.execute(
            "SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_class c JOIN pg_inherits i"
            " ON i.inhrelid = c.oid WHERE i.inhparent = 'parted'::regclass ORDER BY 1"
        ).fetchall()
        assert bounds == [("DEFAULT",), ("FOR VALUES FROM ('10') TO ('20')",)]


@pytest.mark.parametrize("options", [{}, {"partition_by": "id"}], ids=["plain", "parted"])
@pytest.mark.parametrize("wanted", [{"key": "id"}, {"key": "id", "primary_key": True}])
def test_an_index_that_a_crash_left_refuses_no_rows(
    dsn: str, tmp_path: Path, options: dict[str, Any], wanted: dict[str, Any]
) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        headrace.connect(dsn, home=tmp_path) as project,
    ):
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        put_tables(project, TableRequest("bag", "SELECT id FROM t", options=options))
        engine = project._engine
        with engine.serving(10) as lease:
            table = _first(engine)
            engine.catalog.commit(Change(put=(_at_epoch_1(table),)), fence=lease.fence)
            state = engine.catalog.state()
            publish(engine, (advanced(_first(engine), 1),), state, fence=lease.fence)
            table = _first(engine)
            build_beside(engine.database, replace(table, options={**options, **wanted}))
            state = engine.catalog.state()
            publish(engine, (advanced(table, 1),), state, fence=lease.fence)
        assert connection.execute("TABLE bag").fetchall() == [(1,), (1,)]
        left = "SELECT count(*) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid"
        left += " WHERE x.indisunique AND c.relname ~ '^headrace_rows'"
        assert connection.execute(left).fetchone() == (0,)


def _first(engine: Engine) -> StreamTable:
    (table,) = engine.catalog.state().stream_tables
    return table


def _at_epoch_1(table: StreamTable) -> StreamTable:
    return replace(table, epoch=1, frontier=dict.fromkeys(table.inputs, 1))


def _with(one: Advanced, change: VisibleChange) -> Advanced:
    return replace(one, change=change)
