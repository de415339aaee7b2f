"""Readers in Spark: one moment for all tables, changes since an epoch, and their notifications."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.catalog import Change
from headrace.errors import NeedsReinit, UserError
from headrace.publish.announce import CHANNEL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

TABLES = {
    "sums": "SELECT account, sum(amount) AS total FROM moves GROUP BY account",
    "counts": "SELECT account, count(*) AS n FROM moves GROUP BY account",
    "whole": "SELECT account, total, n FROM sums JOIN counts USING (account)",
}


@pytest.fixture
def bank(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE moves (id int PRIMARY KEY, account int, amount bigint)")
    sql.execute("INSERT INTO moves VALUES (1, 1, 10), (2, 2, 20)")
    project.create_stream_tables(TABLES)
    return project


def rows(frame: object) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in frame.collect())  # type: ignore[attr-defined]


def test_all_tables_at_one_moment(bank: headrace.Headrace, sql: psycopg.Connection) -> None:
    first = bank.at()
    before = rows(first.table("sums"))
    sql.execute("INSERT INTO moves VALUES (3, 1, 5)")
    second = bank.refresh("whole").epoch
    # Asked for only now, and yet of the first moment; so is the status.
    assert rows(first.table("whole")) == Counter([(1, 10, 1), (2, 20, 1)])
    assert rows(first.table("sums")) == before == Counter([(1, 10), (2, 20)])
    assert {one.epoch for one in first.status()} == {first.epoch}
    assert (bank.at().epoch, first.epoch < second) == (second, True)
    assert rows(bank.at().table("whole")) == Counter([(1, 15, 2), (2, 20, 1)])
    # By their numbers both moments are still there, and the members of the group agree in both.
    past, now = bank.at(first.epoch), bank.at(second)
    assert (past.epoch, now.epoch) == (first.epoch, second)
    for pinned, n in ((past, 2), (now, 3)):
        assert sum(row[2] for row in rows(pinned.table("whole"))) == n
        assert sum(row[1] for row in rows(pinned.table("counts"))) == n
    assert rows(now.changes("sums", after=first.epoch).frame) == Counter([(-1, 1, 10), (1, 1, 15)])
    with pytest.raises(UserError) as caught:
        bank.at(second + 1)
    assert caught.value.code == "invalid-option"


def test_changes_add_up_to_the_table(bank: headrace.Headrace, sql: psycopg.Connection) -> None:
    kept: Counter[tuple[object, ...]] = Counter()
    epoch = 0

    def follow() -> Counter[tuple[object, ...]]:
        nonlocal epoch
        frame, epoch = bank.changes("sums", after=epoch)
        assert frame.columns == ["_weight", "account", "total"]
        change = Counter({tuple(row)[1:]: row[0] for row in frame.collect()})
        kept.update(change)
        return change

    assert follow() == Counter([(1, 10), (2, 20)])
    assert follow() == Counter()
    sql.execute("UPDATE moves SET amount = 11 WHERE id = 1")
    bank.refresh("whole")
    sql.execute("UPDATE moves SET amount = 12 WHERE id = 1")
    sql.execute("DELETE FROM moves WHERE id = 2")
    bank.refresh("whole")
    assert dict(follow()) == {(1, 10): -1, (1, 12): 1, (2, 20): -1}, "two epochs, netted"
    assert +kept == rows(bank.table("sums")) == Counter([(1, 12)])
    assert epoch == {one.name: one.epoch for one in bank.status()}["public.sums"]
    with pytest.raises(UserError) as caught:
        bank.changes("sums", after=epoch + 1)
    assert caught.value.code == "invalid-option"


def test_epochs_that_are_gone(bank: headrace.Headrace, sql: psycopg.Connection) -> None:
    epochs = [bank.at().epoch]
    for number in range(3, 11):
        sql.execute("INSERT INTO moves VALUES (%s, 1, 1)", (number,))
        epochs.append(bank.refresh("sums").epoch)
    state = bank._engine.catalog.state()
    table = state.stream_table("public", "sums")
    assert table is not None
    pin = state.relation(table.relation).pin
    files = bank._engine.store.files(table.relation, pin, 0, pin.epoch)
    lost = next(e for e in epochs if any(f.first_epoch <= e < f.last_epoch for f in files))
    for ask in (lambda: bank.at(lost).table("sums"), lambda: bank.changes("sums", after=lost)):
        with pytest.raises(NeedsReinit) as caught:
            ask()
        assert (caught.value.code, "compacted" in (caught.value.detail or "")) == (
            "epoch-expired",
            True,
        )
    # A table that is rebuilt begins a new log; what it was before is not an empty table.
    before = bank.at().epoch
    bank.reinit("sums")
    for ask in (lambda: bank.at(before).table("sums"), lambda: bank.changes("sums", after=before)):
        with pytest.raises(NeedsReinit) as caught:
            ask()
        assert (caught.value.code, "rebuilt" in (caught.value.detail or "")) == (
            "epoch-expired",
            True,
        )
    assert rows(bank.changes("sums").frame) == Counter([(1, 1, 18), (1, 2, 20)])


def test_epochs_inside_a_compaction_that_need_no_row_of_it(
    bank: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """Only what the merged rows are needed for has expired."""
    epochs = [bank.at().epoch]
    for number in range(3, 11):
        sql.execute("INSERT INTO moves VALUES (%s, 1, 1)", (number,))
        epochs.append(bank.refresh("sums").epoch)
    engine = bank._engine
    state = engine.catalog.state()
    table = state.stream_table("public", "sums")
    assert table is not None
    relation = state.relation(table.relation)
    files = engine.store.files(table.relation, relation.pin, 0, relation.pin.epoch)
    lost = next(e for e in epochs if any(f.first_epoch <= e < f.last_epoch for f in files))
    # Up to the epoch that one has already, nothing is missing.
    assert rows(bank.at(lost).changes("sums", after=lost).frame) == Counter()
    with pytest.raises(NeedsReinit):
        bank.at(lost).changes("sums")
    with pytest.raises(NeedsReinit):
        bank.changes("sums", after=lost)
    # All changes since were of columns that nobody sees.
    with engine.writing() as lease:
        unseen = replace(relation, shown_epoch=lost)
        engine.catalog.commit(Change(put=(unseen,)), fence=lease.fence)
    assert rows(bank.at(lost).table("sums")) == rows(bank.table("sums"))
    assert rows(bank.changes("sums", after=lost).frame) == Counter()
    assert rows(bank.at(lost).changes("sums").frame) == rows(bank.changes("sums").frame)
    first = relation.pin.epoch
    assert rows(bank.at(first).changes("sums", after=lost).frame) == Counter()
    # A table that takes its place is another one, however little it shows.
    bank.reinit("sums")
    for ask in (lambda: bank.at(lost).table("sums"), lambda: bank.changes("sums", after=first)):
        with pytest.raises(NeedsReinit):
            ask()


def test_a_table_that_was_empty_then(bank: headrace.Headrace, sql: psycopg.Connection) -> None:
    bank.create_stream_table("large", "SELECT account FROM sums WHERE total > 100")
    empty = bank.at().epoch
    sql.execute("INSERT INTO moves VALUES (3, 1, 500)")
    bank.refresh("large")
    assert rows(bank.at(empty).table("large")) == Counter()
    assert rows(bank.changes("large", after=empty).frame) == Counter([(1, 1)])
    assert rows(bank.table("large")) == Counter([(1,)])


def test_one_notification_a_publish(
    bank: headrace.Headrace, sql: psycopg.Connection, dsn: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        assert bank.refresh("whole").mode == "SKIPPED"
        sql.execute("INSERT INTO moves VALUES (3, 1, 5)")
        epoch = bank.refresh("whole").epoch
        sql.execute(f"NOTIFY {CHANNEL}, 'end'")
        heard = [one.payload for one in listener.notifies(timeout=60, stop_after=2)]
    assert heard[1] == "end"
    notice = json.loads(heard[0])
    assert (notice["epoch"], sorted(notice["tables"])) == (
        epoch,
        ["public.counts", "public.sums", "public.whole"],
    )


def test_waiting_without_and_with_a_daemon(
    bank: headrace.Headrace, sql: psycopg.Connection, dsn: str, spark: SparkSession
) -> None:
    sql.execute("INSERT INTO moves VALUES (3, 1, 5)")
    epoch = bank.wait_fresh("whole")
    assert sql.execute("SELECT total FROM whole WHERE account = 1").fetchall() == [(15,)]
    assert bank.wait_fresh("whole") == epoch, "nothing was committed since"
    bank.create_stream_table("followed", "SELECT sum(amount) AS s FROM moves", schedule="100ms")
    with headrace.connect(dsn=dsn, home=bank.home, spark=spark) as serving:
        daemon = serving.daemon()
        thread = threading.Thread(target=daemon.run, args=(30.0,))
        thread.start()
        try:
            while bank._engine.catalog.serving() is None:
                assert thread.is_alive()
            sql.execute("INSERT INTO moves VALUES (4, 2, 7)")
            bank.wait_fresh("followed")
            assert sql.execute("SELECT s FROM followed").fetchall() == [(42,)]
            requests = sql.execute("SELECT count(*) FROM headrace.requests").fetchone()
            assert requests == (0,), "its schedule brought it about"
            bank.wait_fresh("whole")
            assert sql.execute("SELECT sum(total), sum(n) FROM whole").fetchall() == [(42, 4)]
            (asked,) = sql.execute("SELECT command ->> 'verb' FROM headrace.requests").fetchall()
            assert asked == ("refresh",), "without a schedule it has to be asked for"
        finally:
            daemon.stop()
            thread.join()
