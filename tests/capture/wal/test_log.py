"""The log of real transactions, decoded: nothing is lost, doubled or taken from elsewhere."""

from __future__ import annotations

import random

import psycopg
import pyarrow as pa
import pytest

from headrace.capture.wal.decoder import Decoder
from headrace.capture.wal.read import differences, type_names
from headrace.capture.wal.value_decoders import stored_images
from headrace.errors import NeedsReinit
from tests.capture.wal.log import Log, bag

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[tuple[object, ...]]


@pytest.mark.parametrize("seed", range(2))
def test_the_sum_of_the_log_is_the_table(log: Log, application: Application, seed: int) -> None:
    """Random statements in two tables, some of them undone, in batches cut anywhere."""
    for name in ("a", "b"):
        application.execute(f"CREATE TABLE {name} (n integer, x text, y numeric(9,2))")
        application.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    log.follow("a", "b")
    chance = random.Random(seed)
    for _ in range(40):
        undone = chance.random() < 0.2
        with application.transaction(force_rollback=undone):
            for _ in range(chance.randrange(4)):
                with application.transaction(force_rollback=chance.random() < 0.3):
                    application.execute(_statement(chance))
    messages = log.messages()
    cuts = sorted(chance.sample(range(1, len(messages)), 5))
    decoder = Decoder()
    decoded = [
        decoder.feed(messages[start:end])
        for start, end in zip([0, *cuts], [*cuts, len(messages)], strict=True)
    ]
    assert decoded[-1].open is None
    for name in ("a", "b"):
        table = log.table(name)
        images = [each for part in decoded for each in part.images if each.relation.name == name]
        changes = pa.concat_tables(stored_images(each, table) for each in images)
        assert bag(changes) == bag(log.live(table))
        positions = sorted(position for each in images for position in each.position.tolist())
        assert len(set(positions)) == len(positions) == len(changes)


def _statement(chance: random.Random) -> str:
    name, n = chance.choice("ab"), chance.randrange(8)
    match chance.randrange(4):
        case 0:
            return f"UPDATE {name} SET y = y + 1, x = nullif(x, 'row {n}') WHERE n = {n}"
        case 1:
            return f"DELETE FROM {name} WHERE n = {n}"
        case _:
            return f"INSERT INTO {name} SELECT g, 'row ' || g, {n} FROM generate_series(1, {n}) g"


def test_transactions_have_their_top_level_ids(log: Log, application: Application) -> None:
    application.execute("CREATE TABLE t (n integer)")
    log.follow("t")
    xids = []
    for n in range(3):
        with application.transaction():
            row = application.execute("SELECT pg_current_xact_id()::text").fetchone()
            assert row is not None
            xids.append(int(str(row[0])) % 2**32)
            with application.transaction():
                application.execute("INSERT INTO t VALUES (%s)", [n])
            with application.transaction(force_rollback=True):
                application.execute("INSERT INTO t VALUES (-1)")
            application.execute("INSERT INTO t VALUES (%s)", [n])
    decoded = log.decoded()
    (images,) = decoded.images
    assert stored_images(images, log.table("t"))["c1"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert images.xid.tolist() == [xid for xid in xids for _ in range(2)]
    assert images.transaction.tolist() == [0, 0, 1, 1, 2, 2]
    assert decoded.ended.xid.tolist() == xids
    ends = decoded.ended.end_lsn.tolist()
    assert ends == sorted(ends)
    assert (decoded.ended.commit_lsn < decoded.ended.end_lsn).all()
    # Whoever advances to the end of the second has only the third left.
    application.execute(
        "SELECT pg_replication_slot_advance(%s, '0/0'::pg_lsn + %s::numeric)", [log.slot, ends[1]]
    )
    assert log.decoded().ended.xid.tolist() == xids[2:]


def test_names_and_columns_that_are_gone(log: Log, application: Application) -> None:
    application.execute('CREATE TABLE "T.""ä" ("a b" integer, gone text, "c""" text, d integer)')
    application.execute('ALTER TABLE "T.""ä" DROP gone')
    application.execute('ALTER TABLE "T.""ä" REPLICA IDENTITY FULL')
    log.follow('T."ä')
    application.execute("""INSERT INTO "T.""ä" VALUES (1, 'x', 2), (3, NULL, 4)""")
    application.execute('DELETE FROM "T.""ä" WHERE d = 4')
    table = log.table('T."ä')
    assert [column.number for column in table.columns] == [1, 3, 4]
    assert bag(log.changes(table)) == bag(log.live(table))
    assert log.live(table).to_pylist() == [{"c1": 1, "c3": "x", "c4": 2}]


def test_columns_that_come_and_change(log: Log, application: Application) -> None:
    """A column dropped and another of its name added are distinguished by their types."""
    application.execute("CREATE DOMAIN price AS numeric(9,2)")
    application.execute("CREATE TABLE t (a integer, b price, c varchar(5))")
    log.follow("t")
    application.execute("INSERT INTO t VALUES (1, 2.5, 'x')")
    application.execute("ALTER TABLE t DROP a, ALTER c TYPE varchar(9)")
    application.execute("ALTER TABLE t ADD a text, ADD d integer GENERATED ALWAYS AS (7) STORED")
    application.execute("INSERT INTO t VALUES (3.5, 'y', 'z')")
    table = log.table("t")
    before, after = (images.relation for images in log.images("t"))
    with log.database.session() as connection:
        names = type_names(connection, [before, after])
    assert differences(after, [c for c in table.columns if c.name != "d"], names) == ()
    assert differences(after, table.columns, names) == ('Column "d" is not in the WAL.',)
    assert differences(before, table.columns, names) == (
        'Column "c" is character varying(5) in the WAL instead of character varying(9).',
        'Column "a" is integer in the WAL instead of text.',
        'Column "d" is not in the WAL.',
    )


def test_partitions_speak_as_their_root(log: Log, application: Application) -> None:
    application.execute("CREATE TABLE t (n integer, x text, k integer) PARTITION BY LIST (k)")
    application.execute("CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1)")
    application.execute("CREATE TABLE t2 (gone text, k integer, x text, n integer)")
    application.execute("ALTER TABLE t2 DROP gone")
    application.execute("ALTER TABLE t ATTACH PARTITION t2 FOR VALUES IN (2)")
    for name in ("t", "t1", "t2"):
        application.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    log.follow("t")
    application.execute("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 2)")
    application.execute("UPDATE t SET k = 2, x = 'moved' WHERE n = 1")
    application.execute("DELETE FROM t2 WHERE n = 2")
    table = log.table("t")
    assert {images.relation.oid for images in log.decoded().images} == {table.oid}
    assert bag(log.changes(table)) == bag(log.live(table))
    assert len(log.live(table)) == 2


def test_partitions_that_tell_more_than_their_root(log: Log, application: Application) -> None:
    """The log calls old rows keys, because the root's identity is one; they are whole."""
    application.execute("CREATE TABLE t (n integer PRIMARY KEY, x text) PARTITION BY RANGE (n)")
    application.execute("CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (9)")
    application.execute("ALTER TABLE t1 REPLICA IDENTITY FULL")
    application.execute("ALTER TABLE t1 ALTER x SET STORAGE EXTERNAL")
    log.follow("t")
    application.execute("INSERT INTO t VALUES (1, repeat('x', 5000)), (2, 'b')")
    application.execute("UPDATE t SET n = 3 WHERE n = 1")
    application.execute("DELETE FROM t WHERE n = 2")
    table = log.table("t")
    decoded = Decoder(full=[table.oid]).feed(log.messages())
    assert [images.image for images in decoded.images] == ["old", "new"]
    changes = pa.concat_tables(stored_images(images, table) for images in decoded.images)
    assert bag(changes) == bag(log.live(table))
    by_image = {images.image: images for images in log.decoded().images}
    assert by_image["new"].unchanged["x"].tolist() == [False, False, True]
    assert by_image["key"].relation.identity == "d"


def test_partitions_that_tell_less_than_their_root(log: Log, application: Application) -> None:
    application.execute("CREATE TABLE t (n integer PRIMARY KEY, x text) PARTITION BY RANGE (n)")
    application.execute("CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (9)")
    application.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    log.follow("t")
    application.execute("INSERT INTO t VALUES (1, 'a')")
    application.execute("UPDATE t SET x = 'b'")
    with pytest.raises(NeedsReinit) as refused:
        log.decoded()
    assert refused.value.code == "wal-not-decodable"
    assert refused.value.detail == "Old rows of public.t do not match its replica identity."


def test_truncation_is_no_change_of_rows(log: Log, application: Application) -> None:
    application.execute("CREATE TABLE t (n integer)")
    log.follow("t")
    application.execute("INSERT INTO t VALUES (1)")
    application.execute("TRUNCATE t")
    application.execute("INSERT INTO t VALUES (2)")
    decoded = log.decoded()
    assert len(decoded.ended) == 3
    assert [len(images) for images in decoded.images] == [2]
