"""A refresh beside which the world goes on: cuts are taken, logs compacted, tables stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

import headrace
from headrace.engine import Engine
from headrace.errors import Transient
from headrace.ingest.ingest import ingest
from headrace.lifecycle.rebuild import suspend
from headrace.refresh.refresh import refresh_group
from headrace.relations.compaction import Merges, compact
from headrace.store.compaction import FEWEST_FILES

pytestmark = pytest.mark.spark

QUERY = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def engine(project: headrace.Headrace, sql: psycopg.Connection) -> Iterator[Engine]:
    """A daemon's engine of a project with one stream table."""
    sql.execute("CREATE TABLE orders (customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i % 3, i FROM generate_series(1, 30) i")
    project.create_stream_table("totals", QUERY)
    engine = project._engine
    with engine.serving(0.0):
        yield engine


def fence_of(engine: Engine) -> int:
    assert engine.shared is not None
    return engine.shared.fence


def test_logs_are_not_compacted_across_the_epoch_of_a_running_refresh(
    engine: Engine, sql: psycopg.Connection
) -> None:
    fence = fence_of(engine)
    sql.execute("UPDATE orders SET amount = amount + 1 WHERE customer = 1")
    before = ingest(engine, engine.catalog.state(), fence)
    (table,) = before.stream_tables
    (source,) = before.sources
    engine.hold(before)
    for number in range(8):
        sql.execute("INSERT INTO orders VALUES (2, %s)", (number,))
        ingest(engine, engine.catalog.state(), fence)
        compact(engine, [source.relation], fence)
    pin = engine.catalog.state().relation(source.relation).pin
    files = engine.store.files(source.relation, pin, 0, pin.epoch)
    assert any(file.first_epoch < file.last_epoch for file in files), "something was compacted"
    (line,) = refresh_group(engine, before, [table.relation], fence).values()
    engine.release(before)
    assert line.epoch == before.databases[0].epoch
    (line,) = refresh_group(engine, engine.catalog.state(), [table.relation], fence).values()
    assert line.mode == "DIFFERENTIAL"
    assert sql.execute("TABLE totals ORDER BY 1").fetchall() == (
        sql.execute(f"{QUERY} ORDER BY 1").fetchall()
    )


def test_a_table_that_was_stopped_meanwhile_is_not_published(
    engine: Engine, sql: psycopg.Connection
) -> None:
    fence = fence_of(engine)
    sql.execute("INSERT INTO orders VALUES (7, 7)")
    before = ingest(engine, engine.catalog.state(), fence)
    (table,) = before.stream_tables
    suspend(engine, table.schema, table.name)
    with pytest.raises(Transient) as caught:
        refresh_group(engine, before, [table.relation], fence)
    assert caught.value.code == "cut-interrupted"
    (now,) = engine.catalog.state().stream_tables
    assert (now.status, now.epoch) == ("SUSPENDED", table.epoch)
    assert sql.execute("SELECT count(*) FROM totals WHERE customer = 7").fetchone() == (0,)


@pytest.mark.parametrize("by", ["driver", "executors"])
def test_large_sums_are_made_beside_refreshes(
    engine: Engine, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr("headrace.relations.compaction.AT_ONCE_ROWS", 1)
    if by == "executors":
        engine.catalog.set("collect_rows", 3)
    (source,) = engine.catalog.state().sources
    (table,) = engine.catalog.state().stream_tables
    begun = set()
    for number in range(30):
        sql.execute("INSERT INTO orders VALUES (%s, %s)", (number % 4, number))
        sql.execute("DELETE FROM orders WHERE amount = %s", (number - 2,))
        state = ingest(engine, engine.catalog.state(), fence_of(engine))
        compact(engine, [source.relation], fence_of(engine))
        refresh_group(engine, state, [table.relation], fence_of(engine))
        begun |= {
            one
            for one in (source.relation, table.relation)
            if engine.part(Merges).being_merged(one)
        }
        if number % 3 == 0:
            engine.part(Merges).wait()
    assert begun == {source.relation, table.relation}
    engine.part(Merges).wait()
    compact(engine, sorted(begun), fence_of(engine))
    for relation in begun:
        pin = engine.catalog.state().relation(relation).pin
        files = engine.store.files(relation, pin, 0, pin.epoch)
        assert any(file.first_epoch < file.last_epoch for file in files), "sums are in place"
        assert len(files) < 2 * FEWEST_FILES
    assert sql.execute("TABLE totals ORDER BY 1").fetchall() == (
        sql.execute(f"{QUERY} ORDER BY 1").fetchall()
    )


def test_a_sum_whose_folder_lost_rows_is_not_put_in_place(
    engine: Engine, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.relations.compaction.AT_ONCE_ROWS", 1)
    (source,) = engine.catalog.state().sources
    written = []
    really = engine.store.write_merged
    monkeypatch.setattr(
        engine.store, "write_merged", lambda *given: (written.append(given[-1]), really(*given))
    )
    for number in range(FEWEST_FILES):
        sql.execute("INSERT INTO orders VALUES (2, %s)", (number,))
        ingest(engine, engine.catalog.state(), fence_of(engine))
        compact(engine, [source.relation], fence_of(engine))
    engine.part(Merges).wait()
    (folder,) = written
    (part,) = Path(folder).iterdir()
    rows = pq.ParquetFile(part).read()
    assert rows.num_rows > 1
    pq.write_table(rows.slice(1), part, store_schema=False)
    before = engine.catalog.state().relation(source.relation).pin
    compact(engine, [source.relation], fence_of(engine))
    assert engine.catalog.state().relation(source.relation).pin == before
    (table,) = engine.catalog.state().stream_tables
    refresh_group(engine, engine.catalog.state(), [table.relation], fence_of(engine))
    assert sql.execute("TABLE totals ORDER BY 1").fetchall() == (
        sql.execute(f"{QUERY} ORDER BY 1").fetchall()
    )
