"""Rows of a source as they were at the last cut, by PostgreSQL's index, whatever was done since."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import psycopg
import pyarrow as pa
import pytest

from headrace.capture.layout import buffer_sql
from headrace.capture.probe import LastCut, probe
from headrace.source.connection import Database
from tests.capture.follower import Bag, bag_of
from tests.ingest.world import TRIGGER, World

pytestmark = pytest.mark.postgres


@pytest.fixture
def mode() -> str:
    return TRIGGER


@pytest.fixture
def table(world: World) -> World:
    world.run(
        "CREATE TABLE t (id integer PRIMARY KEY, g integer, v numeric(10,2), w text)",
        "CREATE INDEX ON t (g)",
        "INSERT INTO t SELECT i, i % 10, i, 'row ' || i FROM generate_series(1, 100) AS i",
    )
    world.follow("t")
    return world


def last_cut(world: World) -> LastCut:
    known = world.engine.catalog.state().database(1)
    assert known.snapshot is not None
    return LastCut(known.snapshot, known.epoch, known.system_identifier, known.timeline)


def physical(world: World, name: str) -> str:
    return next(column.physical for column in world.source.columns if column.name == name)


def asked(world: World, name: str, values: Sequence[int], cut: LastCut | None = None) -> pa.Table:
    columns = [one.physical for one in world.source.columns]
    keys = {physical(world, name): values}
    database = world.engine.database
    return probe(database, world.source, cut or last_cut(world), keys, columns, 1_000)


def stored(world: World, name: str, values: Sequence[int]) -> Bag:
    relation = world.engine.catalog.state().relation(world.source.relation)
    rows = world.engine.store.read(relation.id, relation.pin, 0, relation.pin.epoch)
    chosen = [value in values for value in rows[physical(world, name)].to_pylist()]
    return netted(bag_of(rows.filter(pa.array(chosen))))


def netted(rows: Bag) -> Bag:
    return type(rows)({row: weight for row, weight in rows.items() if weight})


def agrees(world: World, name: str, values: Sequence[int]) -> None:
    found = asked(world, name, values)
    assert found is not None
    assert netted(bag_of(found)) == stored(world, name, values)


def test_nothing_happened_since(table: World) -> None:
    agrees(table, "id", [1, 50, 1000])
    agrees(table, "g", [3, 4])
    assert netted(bag_of(asked(table, "g", [3]))).total() == 10


def test_what_was_committed_since_is_taken_back(table: World) -> None:
    table.run(
        "UPDATE t SET v = v + 1 WHERE id = 3",
        "UPDATE t SET g = 3 WHERE id = 4",
        "UPDATE t SET g = 5, w = NULL WHERE id = 13",
        "DELETE FROM t WHERE id = 23",
        "INSERT INTO t VALUES (203, 3, 1, 'new')",
        "UPDATE t SET id = 303 WHERE id = 33",
    )
    agrees(table, "g", [3, 5])
    agrees(table, "id", [3, 4, 13, 23, 203, 33, 303])


def test_transactions_that_are_open_or_rolled_back_do_not_count(table: World) -> None:
    with psycopg.connect(table.dsn) as other:
        other.execute("UPDATE t SET g = 99 WHERE g = 3")
        agrees(table, "g", [3, 99])
        table.run("UPDATE t SET v = 0 WHERE g = 4")
        agrees(table, "g", [3, 4])
        other.commit()
        agrees(table, "g", [3, 4, 99])
        other.execute("DELETE FROM t")
        other.rollback()
    agrees(table, "g", [3, 4, 99])


def test_one_that_was_open_during_the_cut(table: World) -> None:
    with psycopg.connect(table.dsn) as other:
        other.execute("UPDATE t SET g = 99 WHERE id = 3")
        table.run("DELETE FROM t WHERE id = 13")
        table.follows()
        agrees(table, "g", [3, 99])
        other.commit()
        agrees(table, "g", [3, 99])
    table.follows()
    agrees(table, "g", [3, 99])


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_and_cuts(table: World, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(30):
        key, group = chance.randrange(1, 130), chance.randrange(12)
        statement = chance.choice(
            (
                f"INSERT INTO t VALUES ({key}, {group}, {number}, 'x') ON CONFLICT DO NOTHING",
                f"UPDATE t SET g = {group} WHERE id = {key}",
                f"UPDATE t SET v = v + 1 WHERE g = {group}",
                f"DELETE FROM t WHERE id = {key}",
            )
        )
        table.run(statement)
        if chance.random() < 0.2:
            table.take()
        if chance.random() < 0.3:
            agrees(table, "g", chance.sample(range(12), 3))
            agrees(table, "id", chance.sample(range(130), 40))


def test_a_column_without_an_index(table: World) -> None:
    assert asked(table, "v", [1]) is None
    table.run("CREATE INDEX ON t (v) WHERE v > 10")
    assert asked(table, "v", [1]) is None


def test_a_later_cut_has_forgotten_the_changes(table: World) -> None:
    before = last_cut(table)
    table.run("UPDATE t SET v = 0 WHERE id = 3")
    table.follows()
    assert asked(table, "id", [3], before) is None
    agrees(table, "id", [3])


def test_another_server(table: World) -> None:
    cut = last_cut(table)
    assert asked(table, "id", [3], replace(cut, system_identifier="1")) is None


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE t",
        "ALTER TABLE t ALTER COLUMN v TYPE numeric(12,4)",
        "ALTER TABLE t DISABLE TRIGGER ALL",
        "ALTER TABLE t RENAME TO s",
        "DROP TABLE t CASCADE",
    ],
)
def test_what_changes_do_not_tell(table: World, statement: str) -> None:
    table.run(statement)
    assert asked(table, "id", [3]) is None


def test_a_lock_is_not_waited_for(table: World) -> None:
    with psycopg.connect(table.dsn) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        assert asked(table, "id", [3]) is None
    agrees(table, "id", [3])


def test_too_many_changes(table: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.capture.probe.MOST_PENDING", 5)
    table.run("UPDATE t SET v = 0 WHERE id <= 2")
    agrees(table, "id", [1, 2, 3])
    table.run("UPDATE t SET v = 1 WHERE id <= 2")
    assert asked(table, "id", [3]) is None


def test_the_column_that_leads_an_index_is_taken(table: World) -> None:
    columns = [one.physical for one in table.source.columns]
    keys = {physical(table, "v"): [3, 4], physical(table, "g"): [3, 4, 5]}
    found = probe(table.engine.database, table.source, last_cut(table), keys, columns, 1_000)
    assert found is not None
    assert netted(bag_of(found)) == stored(table, "g", [3, 4, 5])


def test_no_more_rows_than_wanted(table: World) -> None:
    columns = [one.physical for one in table.source.columns]
    keys = {physical(table, "g"): list(range(10))}
    found = probe(table.engine.database, table.source, last_cut(table), keys, columns, 7)
    assert found is not None and found.num_rows == 8


def test_a_server_that_is_not_as_far_as_the_cut(table: World) -> None:
    cut = last_cut(table)
    least, greatest, *_ = cut.snapshot.split(":")
    later = f"{int(least) + 1000}:{int(greatest) + 1000}:"
    assert asked(table, "id", [3], replace(cut, snapshot=later)) is None


def test_a_buffer_that_is_emptied_meanwhile(table: World) -> None:
    """A truncation shows at once, whatever the snapshot, so it is not read across one."""
    table.run("UPDATE t SET v = 0 WHERE id = 3")
    buffer = buffer_sql(table.source.oid)
    with psycopg.connect(table.dsn) as other:
        other.execute(f"TRUNCATE {buffer}".encode())
        assert asked(table, "id", [3]) is None
        other.rollback()
    agrees(table, "id", [3])


def test_labels_that_may_be_renamed(world: World) -> None:
    world.run(
        "CREATE TYPE mood AS ENUM ('calm', 'cross')",
        "CREATE TABLE t (id integer PRIMARY KEY, m mood)",
        "INSERT INTO t VALUES (1, 'calm')",
    )
    world.follow("t")
    assert asked(world, "id", [1]) is None


def test_a_database_that_does_not_answer(table: World) -> None:
    nowhere = Database("host=127.0.0.1 port=1 dbname=nowhere connect_timeout=1")
    columns = [one.physical for one in table.source.columns]
    keys = {physical(table, "id"): [3]}
    assert probe(nowhere, table.source, last_cut(table), keys, columns, 1_000) is None
