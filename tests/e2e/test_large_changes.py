"""Changes beyond `collect_rows`: executors net and write them, the driver passes batches on."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

import headrace
from headrace.relations import visible_change as batches
from headrace.store.compaction import FEWEST_FILES
from headrace.store.vacuum import PARTS
from tests.e2e.oracle import assert_served
from tests.e2e.typed_columns import COLUMNS, image

pytestmark = pytest.mark.e2e
LIMIT = 40
QUERIES = {
    "keyed": "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer",
    "hidden": "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    " HAVING sum(amount) > 300",
    "bag": "SELECT amount, note FROM orders",
}


class Large:
    """Records which changes went through parts, and that nothing is left of them."""

    def __init__(self, hr: headrace.Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
        hr.set("collect_rows", LIMIT)
        self.folders: list[Path] = []
        store = hr._engine.store
        parts = store.parts

        def noted(folder: str, schema: object) -> object:
            self.folders.append(Path(folder))
            return parts(folder, schema)

        monkeypatch.setattr(store, "parts", noted)
        monkeypatch.setattr(batches, "BATCH_ROWS", 16)

    def taken(self) -> int:
        """How many changes were large since the last time."""
        assert not any(folder.exists() for folder in self.folders)
        number, self.folders = len(self.folders), []
        return number


@pytest.fixture
def large(project: headrace.Headrace, monkeypatch: pytest.MonkeyPatch) -> Large:
    return Large(project, monkeypatch)


def orders(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int, note text)")
    sql.execute(
        "INSERT INTO orders SELECT i, nullif(i %% 100, 7), i / 2, nullif('n' || i / 2 %% 3, 'n1')"
        " FROM generate_series(1, 500) i",
        (),
    )


def test_large_and_small_changes_alternate(
    project: headrace.Headrace, sql: psycopg.Connection, large: Large
) -> None:
    orders(sql)
    names = ("hidden", "bag")
    for name in names:
        project.create_stream_table(name, QUERIES[name])
    assert large.taken() == len(names), "the first fill is large"
    changes = [
        ("UPDATE orders SET amount = amount + 100", True),
        ("DELETE FROM orders WHERE id > 498", False),
        ("UPDATE orders SET customer = customer + 1000, note = 'moved' WHERE id % 2 = 0", True),
        ("DELETE FROM orders", True),
    ]
    for statement, is_large in changes:
        sql.execute(statement)
        for name in names:
            refresh = project.refresh(name)
            assert refresh.mode == "DIFFERENTIAL"
            assert refresh.spark_jobs > 0
            assert_served(project, sql, name)
        assert large.taken() == (len(names) if is_large else 0), statement
    assert sql.execute("SELECT * FROM hidden").fetchall() == []


def test_what_executors_write_is_sorted_by_its_key(
    project: headrace.Headrace, sql: psycopg.Connection, large: Large
) -> None:
    """What is computed, and the sums that compaction makes; one row group stays as it comes."""
    sql.execute("CREATE TABLE orders (amount int, note text, customer int, id int PRIMARY KEY)")
    sql.execute(
        "INSERT INTO orders SELECT i, '', i * 37 %% 101, i * 263 %% 501"
        " FROM generate_series(1, 500) i",
        (),
    )
    project.create_stream_table("keyed", QUERIES["keyed"])
    engine, orders, written = project._engine, {}, set()
    for _ in range(FEWEST_FILES + 1):
        for relation in engine.catalog.state().relations:
            order = engine.store.arrangement(relation.id, relation.pin).order
            orders[relation.id] = order
            for file in engine.store.files(relation.id, relation.pin, 0, relation.pin.epoch):
                if PARTS not in file.uri:
                    continue
                written.add(relation.id)
                keys = pq.read_table(file.uri, columns=list(order)).to_pylist()
                values = [tuple(row.values()) for row in keys]
                assert values == sorted(values)
        sql.execute("UPDATE orders SET amount = amount + 1")
        assert project.refresh("keyed").mode == "DIFFERENTIAL"
    assert sorted(orders[name] for name in written) == [("c4",), ("k1",)]
    sums = [
        file
        for relation in engine.catalog.state().relations
        for file in engine.store.files(relation.id, relation.pin, 0, relation.pin.epoch)
        if file.first_epoch < file.last_epoch
    ]
    assert len(sums) > 1
    assert large.taken() > 1
    assert_served(project, sql, "keyed")


def test_counts_are_those_of_the_visible_change(
    project: headrace.Headrace, sql: psycopg.Connection, large: Large
) -> None:
    orders(sql)
    project.create_stream_table("keyed", QUERIES["keyed"])
    assert large.taken() == 1
    sql.execute("UPDATE orders SET amount = amount + 1 WHERE customer < 60")
    refresh = project.refresh("keyed")
    groups = sql.execute("SELECT count(DISTINCT customer) FROM orders WHERE customer < 60")
    assert (refresh.rows_inserted, refresh.rows_deleted) == groups.fetchone() * 2
    assert large.taken() == 1
    full = project.refresh("keyed", mode="FULL")
    assert (full.mode, full.rows_inserted, full.rows_deleted) == ("FULL", 0, 0)
    assert project.verify("keyed", source=True).equal


def test_every_type_passes_through_parts(
    project: headrace.Headrace, sql: psycopg.Connection, large: Large
) -> None:
    sql.execute("CREATE TYPE mood AS ENUM ('sad', 'o''k')")
    declared = ", ".join(f"c{i} {type_}" for i, (type_, _) in enumerate(COLUMNS.values()))
    sql.execute(f"CREATE TABLE everything (id int, {declared})")
    project.set("collect_rows", 3)
    columns = ", ".join(f"c{i}" for i in range(len(COLUMNS)))
    project.create_stream_table("shown", f"SELECT {columns} FROM everything")
    assert large.taken() == 0
    for number in range(max(len(values) for _, values in COLUMNS.values())):
        values = ", ".join(values[number % len(values)] for _, values in COLUMNS.values())
        sql.execute(f"INSERT INTO everything VALUES ({number}, {values}), ({number}, {values})")
    sql.execute("INSERT INTO everything (id) VALUES (NULL)")
    assert project.refresh("shown").mode == "DIFFERENTIAL"
    assert large.taken() == 1
    assert image(sql, "shown") == image(sql, "everything")
    sql.execute(
        "DELETE FROM everything WHERE ctid IN (SELECT min(ctid) FROM everything GROUP BY id)"
    )
    assert project.refresh("shown").mode == "DIFFERENTIAL"
    assert large.taken() == 1
    assert image(sql, "shown") == image(sql, "everything")


def test_what_a_failed_publish_leaves_is_removed(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    large: Large,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders(sql)
    project.create_stream_table("keyed", QUERIES["keyed"])
    assert large.taken() == 1
    sql.execute("UPDATE orders SET amount = amount + 1")

    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr("headrace.publish.publish.apply_change", crash)
        with pytest.raises(Crash):
            project.refresh("keyed")
    (left,) = large.folders
    assert left.is_dir()
    assert project.refresh("keyed").mode == "DIFFERENTIAL"
    assert large.taken() == 2
    assert not left.exists()
    assert_served(project, sql, "keyed")


def test_a_change_that_comes_in_several_batches(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    large: Large,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch holds megabytes, so that several of them are made here by cutting one up."""
    orders(sql)
    project.create_stream_table("bag", QUERIES["bag"])
    database = project._engine.database
    whole = database.arrow_batches

    def cut_up(query: str, *, by_index: bool = False) -> object:
        for batch in whole(query, by_index=by_index):
            yield from (batch.slice(start, 64) for start in range(0, batch.num_rows, 64))

    monkeypatch.setattr(database, "arrow_batches", cut_up)
    monkeypatch.setattr("headrace.relations.compaction.worth_merging", lambda *_: ())
    sql.execute("UPDATE orders SET amount = amount + 1")
    assert project.refresh("bag").mode == "DIFFERENTIAL"
    state = project._engine.catalog.state()
    (source,) = state.sources
    pin = state.relation(source.relation).pin
    written = project._engine.store.files(source.relation, pin, pin.epoch - 1, pin.epoch)
    assert len(written) == 16, "one file a batch, in one commit"
    assert_served(project, sql, "bag")
    assert project.verify("bag", source=True).equal


def test_large_results_are_written_apart_by_the_partition(
    project: headrace.Headrace, sql: psycopg.Connection, large: Large
) -> None:
    orders(sql)
    project.create_stream_table("bag", QUERIES["bag"], partition_by="note")
    assert large.taken() == 1
    for statement in ("UPDATE orders SET amount = -amount", "DELETE FROM orders WHERE note = 'n2'"):
        sql.execute(statement)
        assert project.refresh("bag").mode == "DIFFERENTIAL"
        assert large.taken() == 1
        assert_served(project, sql, "bag")
    state = project._engine.catalog.state()
    (table,) = state.stream_tables
    pin = state.relation(table.relation).pin
    for epoch in {
        file.last_epoch for file in project._engine.store.files(table.relation, pin, 0, pin.epoch)
    }:
        files = project._engine.store.files(table.relation, pin, epoch - 1, epoch)
        notes = [set(pq.read_table(file.uri)["c2"].to_pylist()) for file in files]
        assert sum(map(len, notes)) == len(set().union(*notes)), "no note is in two files"
    assert len(partitions_of(sql, "bag")) == 3


def partitions_of(sql: psycopg.Connection, name: str) -> list[tuple[int, ...]]:
    children = "SELECT inhrelid FROM pg_inherits WHERE inhparent = %s::regclass"
    return sql.execute(children, [name]).fetchall()
