"""What is kept of the past: readers that lag lose nothing, frames outlive compaction, files go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import headrace
from headrace.catalog import Change
from headrace.refresh.refresh import LastPruning
from headrace.store import LogFile, Pin
from headrace.store.compaction import FEWEST_FILES
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
EPOCHS, MOST_FILES = 2 * FEWEST_FILES, FEWEST_FILES + 3
QUERY = "SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer"


@pytest.fixture
def orders(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE orders (id int, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 7, i FROM generate_series(1, 50) i")


def run(hr: headrace.Headrace, sql: psycopg.Connection, name: str) -> None:
    """Many epochs in each of which every row of the table changes."""
    for epoch in range(EPOCHS):
        sql.execute("UPDATE orders SET amount = amount + 1 WHERE id %% 10 <> %s", [epoch % 10])
        assert hr.refresh(name).mode == "DIFFERENTIAL"


def live(hr: headrace.Headrace) -> dict[str, tuple[LogFile, ...]]:
    relations = hr._engine.catalog.state().relations
    return {r.id: hr._engine.store.files(r.id, r.pin, 0, r.pin.epoch) for r in relations}


def on_disk(folder: Path, relation: str) -> set[str]:
    found = (folder / "store" / relation).rglob("*.parquet")
    return {str(path) for path in found if "_delta_log" not in path.parts}


@pytest.mark.usefixtures("orders")
def test_a_reader_that_lags_neither_holds_back_nor_starts_again(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    for name in ("eager", "lazy"):
        project.create_stream_table(name, QUERY)
    run(project, sql, "eager")
    assert all(len(files) <= MOST_FILES for files in live(project).values())
    assert_served(project, sql, "eager")
    assert project.verify("lazy").equal, "its inputs can still be read where it stands"
    assert project.refresh("lazy").mode == "DIFFERENTIAL"
    assert_served(project, sql, "lazy")
    assert project.verify("lazy", source=True).equal


@pytest.mark.usefixtures("orders")
def test_frames_outlive_compaction_until_the_retention_ends(
    project: headrace.Headrace,
    sql: psycopg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.create_stream_table("totals", QUERY)
    frame = project.table("totals")
    before = sql.execute("SELECT * FROM totals ORDER BY 1").fetchall()
    run(project, sql, "totals")
    kept = {name: on_disk(tmp_path, name) for name in live(project)}
    assert all(len(kept[name]) > EPOCHS for name in kept), "nothing is removed at once"
    assert [tuple(row) for row in frame.orderBy("customer").collect()] == before
    project.set("history_retention", 0)
    # The wait alone ends it: no further compaction is needed.
    monkeypatch.setattr("headrace.relations.compaction.worth_merging", lambda *_: ())
    sql.execute("UPDATE orders SET amount = amount + 1")
    assert project.refresh("totals").mode == "DIFFERENTIAL"
    for name, files in live(project).items():
        assert on_disk(tmp_path, name) == {file.uri for file in files}
    assert_served(project, sql, "totals")
    assert project.verify("totals", source=True).equal


@pytest.mark.usefixtures("orders")
def test_executors_sum_up_large_runs(
    project: headrace.Headrace, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.create_stream_table("totals", QUERY)
    run(project, sql, "totals")
    store = project._engine.store
    replaced: list[str] = []
    really = store.replace

    def noted(
        relation: str, pin: Pin, chosen: tuple[LogFile, ...], folder: str, rows: int | None = None
    ) -> Pin:
        replaced.append(relation)
        return really(relation, pin, chosen, folder, rows)

    monkeypatch.setattr(store, "replace", noted)
    project.set("collect_rows", 20)
    run(project, sql, "totals")
    assert set(replaced) == set(live(project))
    assert all(len(files) <= MOST_FILES for files in live(project).values())
    assert_served(project, sql, "totals")
    assert project.verify("totals", source=True).equal


@pytest.mark.usefixtures("orders")
def test_a_refresh_removes_lines_that_are_too_old(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """By the settings in force; what the choice between incremental and full rests on stays."""
    project.create_stream_table("totals", QUERY)
    engine = project._engine
    (first,) = project.history("totals")
    failed = replace(first, error="x", effort=None)
    with engine.writing() as lease:
        engine.catalog.commit(Change(refreshes=(failed,)), fence=lease.fence)
    sql.execute("UPDATE headrace.refreshes SET finished_at = finished_at - interval '9 days'")
    sql.execute("UPDATE orders SET amount = amount + 1")
    project.refresh("totals")
    assert len(project.history("totals")) == 3, "30 days are not over"
    project.set("refresh_history_age", 3600.0)
    engine.part(LastPruning).at = None
    sql.execute("UPDATE orders SET amount = amount + 1")
    project.refresh("totals")
    assert [line.error for line in project.history("totals")] == [None] * 3


@pytest.mark.usefixtures("orders")
def test_a_verify_removes_receipts_that_are_too_many(project: headrace.Headrace) -> None:
    """Of every table, also of those that are verified a moment after another one was pruned."""
    names = ("totals", "more")
    for name in names:
        project.create_stream_table(name, QUERY)
    project.set("refresh_history_lines", 2)
    for _ in range(3):
        for name in names:
            project.verify(name)
    assert [len(project.receipts(name)) for name in names] == [3, 3], "pruned a moment ago"
    project._engine.part(LastPruning).at = None
    for name in names:
        project.verify(name)
    assert [len(project.receipts(name)) for name in names] == [2, 3]
