"""Tables whose old rows the log knows by key only: rows before and changes are the table."""

from __future__ import annotations

import random
from dataclasses import replace

import psycopg
import pyarrow as pa
import pytest

from headrace.capture.wal.decoder import Decoder
from headrace.capture.wal.identity import identities
from headrace.capture.wal.value_decoders import IS_KEY, POSITION, events_of, unsent
from headrace.catalog.records import Relation
from headrace.ingest.keyed import keyed_changes
from headrace.source.table import SourceTable
from headrace.store import net
from tests.capture.wal.log import Log, bag
from tests.store.memory_store import MemoryStore

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[tuple[object, ...]]


class Follower:
    """A source's relation, brought forward by one reading of the log after another."""

    def __init__(self, log: Log, name: str) -> None:
        self.log = log
        self.table: SourceTable = log.table(name)
        with log.database.session() as connection:
            found = identities(connection, [self.table], log.database.version)[self.table.oid]
        assert found.kind == "key"
        self.numbers = found.key
        self.key = tuple(f"c{number}" for number in found.key)
        self.store = MemoryStore()
        copied = log.live(self.table)
        weight = pa.array([1] * len(copied), pa.int64())
        self.columns = tuple(copied.column_names)
        columns = tuple((c.physical, c.type) for c in self.table.stored if c.type is not None)
        pin = self.store.create("r1", copied.schema)
        pin = self.store.append("r1", pin, 1, copied.add_column(0, "_weight", weight))
        self.relation = Relation("r1", columns, self.columns, pin)
        self.read = 0

    def events(self, cuts: int = 3, chance: random.Random | None = None) -> pa.Table:
        """What the log has, and was not read before."""
        messages = self.log.messages()
        middle = sorted((chance or random.Random(0)).sample(range(1, len(messages)), cuts))
        decoder = Decoder([self.table.oid])
        found = []
        for start, end in zip([0, *middle], [*middle, len(messages)], strict=True):
            images = decoder.feed(messages[start:end]).images
            found += [events_of(one, self.table, self.numbers) for one in images]
        return pa.concat_tables(found)

    def catch_up(self, events: pa.Table) -> pa.Table:
        """The change, after it was found to be that of the table."""
        new = events.filter(pa.compute.field(POSITION) >= self.read)
        changes = keyed_changes(self.store, self.relation, new, self.key, self.columns)
        pin, epoch = self.relation.pin, self.relation.pin.epoch + 1
        pin = self.store.append("r1", pin, epoch, changes)
        self.relation = replace(self.relation, pin=pin)
        self.read = 2 * len(self.log.messages())
        now = net(self.store.read("r1", pin, 0, pin.epoch))
        assert bag(now) == bag(self.log.live(self.table))
        return changes


TABLES = {
    "primary key": "CREATE TABLE t (n integer PRIMARY KEY, x text, y numeric, k text DEFAULT 'k')",
    "composite": "CREATE TABLE t (x text, n integer, y numeric, k text DEFAULT 'k', "
    "PRIMARY KEY (k, n))",
    "index": "CREATE TABLE t (n integer NOT NULL, x text, y numeric, k text DEFAULT 'k' NOT NULL);"
    "CREATE UNIQUE INDEX i ON t (n, k); ALTER TABLE t REPLICA IDENTITY USING INDEX i",
    "partitions": "CREATE TABLE t (y numeric, n integer PRIMARY KEY, x text, k text DEFAULT 'k') "
    "PARTITION BY RANGE (n);"
    "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (15);"
    "CREATE TABLE t2 (gone integer, k text, x text, n integer NOT NULL, y numeric);"
    "ALTER TABLE t2 DROP gone; ALTER TABLE t ATTACH PARTITION t2 FOR VALUES FROM (15) TO (9999);"
    "ALTER TABLE t1 REPLICA IDENTITY FULL",
}


@pytest.mark.parametrize("made", TABLES)
def test_random_statements(log: Log, application: Application, made: str) -> None:
    """With savepoints that are undone, values stored apart, and keys that move."""
    application.execute(TABLES[made].encode())
    application.execute("ALTER TABLE t ALTER x SET STORAGE EXTERNAL")
    if made == "partitions":
        for part in ("t1", "t2"):
            application.execute(f"ALTER TABLE {part} ALTER x SET STORAGE EXTERNAL".encode())
    application.execute(
        "INSERT INTO t (n, x, y) SELECT g, repeat('x', g * 300), g FROM generate_series(1, 20) g"
    )
    log.follow("t")
    follower = Follower(log, "t")
    chance = random.Random(made)
    for _ in range(4):
        for _ in range(25):
            with application.transaction(force_rollback=chance.random() < 0.2):
                for _ in range(chance.randrange(1, 5)):
                    _try(application, chance)
        events = follower.events(chance=chance)
        follower.catch_up(events)
    old = set(events.filter(events[IS_KEY])[POSITION].to_pylist())
    moved = old & {position - 1 for position in events[POSITION].to_pylist()}
    seen = {
        "gaps": sum(events[unsent(_physical(follower, "x"))].to_pylist()),
        "moved": len(moved),
        "deleted": len(old - moved),
    }
    assert all(count >= 5 for count in seen.values()), seen


def _physical(follower: Follower, name: str) -> str:
    column = follower.table.column(name)
    assert column is not None
    return column.physical


def _try(application: Application, chance: random.Random) -> None:
    """One statement in a savepoint, which may be undone, be it by a key that is there already."""
    n, m = chance.randrange(1, 30), chance.randrange(1, 30)
    length = chance.choice([3, 5000])
    statement = chance.choice(
        [
            f"INSERT INTO t (n, x, y) VALUES ({n}, repeat('y', {length}), {m}.50)",
            f"INSERT INTO t (n, x, y) VALUES ({n}, NULL, NULL)",
            f"UPDATE t SET y = coalesce(y, 0) + 1 WHERE n BETWEEN {n} AND {n + 5}",
            f"UPDATE t SET x = x || 'z' WHERE n = {n}",
            f"UPDATE t SET n = {m} WHERE n = {n}",
            f"UPDATE t SET n = {m}, x = 'short' WHERE n = {n}",
            f"UPDATE t SET n = n + 100 WHERE n >= {max(n, m)}",
            "UPDATE t SET n = n - 100 WHERE n > 100 AND n - 100 NOT IN (SELECT n FROM t)",
            f"DELETE FROM t WHERE n BETWEEN {n} AND {n + 1}",
            f"WITH d AS (DELETE FROM t WHERE n = {n} RETURNING *) SELECT * FROM d",
        ]
    )
    try:
        with application.transaction(force_rollback=chance.random() < 0.2):
            application.execute(statement.encode())
    except psycopg.errors.UniqueViolation:
        pass


def test_a_key_that_is_stored_apart(log: Log, application: Application) -> None:
    """PostgreSQL sends the old key then, and leaves the same value out of the new row."""
    application.execute("CREATE TABLE t (k text, n integer, y integer, PRIMARY KEY (k, n))")
    application.execute("ALTER TABLE t ALTER k SET STORAGE EXTERNAL")
    log.follow("t")
    follower = Follower(log, "t")
    application.execute("INSERT INTO t VALUES (repeat('k', 2500), 1, 1), ('short', 2, 2)")
    follower.catch_up(follower.events())
    application.execute("UPDATE t SET y = y + 1")
    application.execute("UPDATE t SET n = n + 1")
    events = follower.events()
    assert sum(events[unsent("c1")].to_pylist()) == 2
    assert sum(events[IS_KEY].to_pylist()) == 3
    assert follower.catch_up(events).num_rows == 4


# A type, a key, and another spelling that PostgreSQL calls equal, or a key of its own.
SPELLINGS = (
    ("numeric", "1.0", "1.00"),
    ("char(5)", "x", "x  "),
    ("interval", "1 mon", "30 days"),
    ("double precision", "0", "-0"),
    ("integer[]", "{1,2}", "{2}"),
    ("timestamptz", "2024-01-01 00:00+00", "2024-01-01 01:00+01"),
    ("uuid", "00000000-0000-0000-0000-00000000000A", "{" + "0" * 31 + "a}"),
    ("jsonb", '{"a": 1.0}', '{"a": 1.00}'),
)


def test_keys_whose_spelling_changes(log: Log, application: Application) -> None:
    names = [f"t{number}" for number in range(len(SPELLINGS))]
    for name, (kind, first, _) in zip(names, SPELLINGS, strict=True):
        application.execute(f"CREATE TABLE {name} (k {kind} PRIMARY KEY, v text)".encode())
        application.execute(f"INSERT INTO {name} VALUES (%s, 'before')".encode(), [first])
    log.follow(*names)
    followers = [Follower(log, name) for name in names]

    for name, (_, _, second) in zip(names, SPELLINGS, strict=True):
        application.execute(f"UPDATE {name} SET k = %s".encode(), [second])
    for follower in followers:
        assert follower.catch_up(follower.events()).num_rows in (0, 2)
    for name in names:
        application.execute(f"UPDATE {name} SET v = 'after'".encode())
    for follower in followers:
        assert follower.catch_up(follower.events()).num_rows == 2
    for name in names:
        application.execute(f"DELETE FROM {name}".encode())
    for follower in followers:
        assert follower.catch_up(follower.events())["_weight"].to_pylist() == [-1]


def test_what_is_undone_by_what_follows_is_no_change(log: Log, application: Application) -> None:
    application.execute("CREATE TABLE t (n integer PRIMARY KEY, x text)")
    application.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    log.follow("t")
    follower = Follower(log, "t")
    application.execute("UPDATE t SET x = 'c' WHERE n = 1")
    application.execute("UPDATE t SET x = 'a' WHERE n = 1")
    with application.transaction():
        application.execute("DELETE FROM t WHERE n = 2")
        application.execute("INSERT INTO t VALUES (2, 'b'), (3, 'c')")
        application.execute("UPDATE t SET n = 4 WHERE n = 3")
        application.execute("DELETE FROM t WHERE n = 4")
    events = follower.events()
    assert events.num_rows == 8
    assert follower.catch_up(events).num_rows == 0
