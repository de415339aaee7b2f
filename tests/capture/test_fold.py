"""Long buffers compacted by the server: the same bag as without, and far fewer rows to read."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from headrace.capture.changes import unseen
from headrace.capture.cut import open_cut
from headrace.capture.fold import MOST_COLUMNS, is_long, pays
from headrace.capture.layout import buffer_sql
from headrace.errors import NeedsReinit
from headrace.source.connection import Database
from headrace.source.reading import stored_schema
from headrace.store import net
from tests.capture.follower import NEVER, Follower, read_changes
from tests.capture.typed_values import COLUMNS

pytestmark = pytest.mark.postgres

Application = psycopg.Connection[Any]


class Buffered:
    """A table whose changes gather in its buffer, from a first cut on."""

    def __init__(self, database: Database, name: str = "t") -> None:
        self.database = database
        self.follower = Follower(database, name)
        self.follower.tick()
        self.source = self.follower.source(name)

    def read(self, fold_from: int) -> pa.Table:
        with open_cut(self.database, [self.source]) as cut:
            upto = cut.cut.snapshot
            rows = read_changes(self.database, self.source, self.before, upto, fold_from)
        assert rows.schema == stored_schema(self.source.stored, weighted=True)
        return rows

    @property
    def before(self) -> str:
        assert self.follower.snapshot is not None
        return self.follower.snapshot

    def pays(self, most: int) -> bool:
        where = unseen(self.before).as_string()
        return pays(self.database, self.source.oid, self.source.stored, where, most)

    def check(self, *, folded: int) -> pa.Table:
        """What is read folded has so many rows, and is the same change."""
        plainly, rows = self.read(NEVER), self.read(1)
        assert bag_of(rows) == bag_of(net(plainly)), "a second compaction has nothing left to do"
        assert rows.num_rows == folded < plainly.num_rows
        return rows


def bag_of(rows: pa.Table) -> Counter[str]:
    """Rows by how they are written, which distinguishes -0.0 from 0.0 and calls NaN the same."""
    found: Counter[str] = Counter()
    for row in rows.to_pylist():
        weight = row.pop("_weight")
        found[repr(row)] += weight
    return found


def test_what_came_and_went(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    application.execute("INSERT INTO t SELECT i, 'old' FROM generate_series(1, 5) i")
    table = Buffered(database)
    application.execute("INSERT INTO t SELECT i, 'new' FROM generate_series(11, 20) i")
    application.execute("DELETE FROM t WHERE id > 10")
    table.check(folded=0)
    application.execute("DELETE FROM t WHERE id < 5")
    application.execute("INSERT INTO t SELECT i, 'old' FROM generate_series(1, 4) i")
    table.check(folded=0)
    for n in range(10):
        application.execute("UPDATE t SET v = %s WHERE id = 5", [f"{n}"])
    rows = table.check(folded=2)
    assert bag_of(rows) == {"{'c1': 5, 'c2': 'old'}": -1, "{'c1': 5, 'c2': '9'}": 1}
    table.follower.tick()
    assert len(table.follower.bag("t")) == 5


def test_duplicates_of_a_table_without_a_key(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (v int)")
    table = Buffered(database)
    application.execute("INSERT INTO t SELECT 1 FROM generate_series(1, 10)")
    application.execute("INSERT INTO t VALUES (NULL), (NULL)")
    assert bag_of(table.check(folded=2)) == {"{'c1': 1}": 10, "{'c1': None}": 2}


@pytest.mark.parametrize(
    ("declared", "one", "other"),
    [
        ("float8", "'0'", "'-0'"),
        ("real", "'-0'", "'0'"),
        ("float8[]", "'{0}'", "'{-0}'"),
        ("interval", "'1 month'", "'30 days'"),
        ("interval[]", "'{1 month}'", "'{30 days}'"),
        ("jsonb", "'1.0'", "'1.00'"),
        ("jsonb[]", "ARRAY['1.0'::jsonb]", "ARRAY['1.00'::jsonb]"),
        ("text", "'a '", "'a'"),
    ],
)
def test_values_that_sql_calls_equal(
    database: Database, application: Application, declared: str, one: str, other: str
) -> None:
    application.execute(f"CREATE TABLE t (v {declared})")
    table = Buffered(database)
    application.execute(f"INSERT INTO t VALUES ({one})")
    with open_cut(database, [table.source]) as cut:
        table.follower.snapshot = cut.cut.snapshot
    for value in (other, one, other, one, other):
        application.execute(f"UPDATE t SET v = {value}")
    table.check(folded=2)


def test_texts_are_distinguished(database: Database, application: Application) -> None:
    """A collation of the application's may call texts equal, that of a buffer does not."""
    application.execute('CREATE TABLE t (v text COLLATE "C", w varchar(5), x char(5))')
    table = Buffered(database)
    found = application.execute(
        "SELECT attname, attcollation::regcollation::text FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND attcollation <> 0",
        [buffer_sql(table.source.oid)],
    ).fetchall()
    assert found == [(name, '"default"') for name in ("c1", "c2", "c3")]


def test_values_that_are_stored_as_the_same(database: Database, application: Application) -> None:
    """1.0 and 1.00 are read as two texts, and are one number as it is stored."""
    application.execute("CREATE TABLE t (v numeric)")
    application.execute("INSERT INTO t VALUES (1.0)")
    table = Buffered(database)
    for value in ("1.00", "1.0", "1.00"):
        application.execute(f"UPDATE t SET v = {value}")
    rows = table.read(1)
    assert (rows.num_rows, net(rows).num_rows) == (2, 0)


def test_values_of_every_kind(database: Database, application: Application) -> None:
    application.execute("CREATE TYPE \"My Mood\" AS ENUM ('so so', 'it''s')")
    columns = [f'"{kind}" {declared}' for kind, (declared, _) in COLUMNS.items()]
    application.execute(f"CREATE TABLE t (n integer, {', '.join(columns)})")
    table = Buffered(database)
    rows = max(len(values) for _, values in COLUMNS.values())
    for n in range(rows):
        literals = [v[n][0] if n < len(v) else "NULL" for _, v in COLUMNS.values()]
        for _ in range(3):
            application.execute(f"INSERT INTO t VALUES ({n}, {', '.join(literals)})")
    table.check(folded=rows)
    application.execute("DELETE FROM t WHERE n <> 1")
    table.check(folded=1)


def test_random_changes(database: Database, application: Application) -> None:
    """Small steps with a cut here and there; `tick` compares with the table each time."""
    application.execute("CREATE TABLE t (k int, v float8)")
    table, random = Buffered(database), Random(7)
    for _ in range(12):
        for _ in range(random.randint(3, 12)):
            key, value = random.randint(1, 4), random.choice(["0", "-0", "1", "NaN"])
            application.execute(
                random.choice(
                    [
                        f"INSERT INTO t VALUES ({key}, '{value}')",
                        f"UPDATE t SET v = '{value}' WHERE k = {key}",
                        f"DELETE FROM t WHERE k = {key}",
                    ]
                )
            )
        assert bag_of(net(table.read(1))) == bag_of(net(table.read(NEVER)))
        if random.random() < 0.5:
            table.follower.tick()


def test_a_value_that_does_not_fit(database: Database, application: Application) -> None:
    """Also if it came and went, as without folding."""
    application.execute("CREATE TABLE t (v numeric)")
    table = Buffered(database)
    application.execute("INSERT INTO t VALUES ('NaN'), (1), (2)")
    application.execute("DELETE FROM t")
    assert table.pays(1)
    with pytest.raises(NeedsReinit, match="cannot be stored"):
        table.read(1)


def test_where_it_does_not_pay(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (id int, v int)")
    table = Buffered(database)
    application.execute("INSERT INTO t SELECT i, 0 FROM generate_series(1, 2000) i")
    assert not table.pays(100), "rows that came are all left"
    application.execute("UPDATE t SET v = 1 WHERE id <= 400")
    assert not table.pays(100), "only two in five fold"
    application.execute("DELETE FROM t WHERE id > 400")
    assert table.pays(100) and table.pays(4000), "of one in three as well"
    assert not table.pays(NEVER)
    rows = table.check(folded=400)
    assert set(rows["_weight"].to_pylist()) == {1}


@pytest.mark.parametrize(("width", "folds"), [(MOST_COLUMNS, True), (MOST_COLUMNS + 1, False)])
def test_very_wide_tables(
    database: Database, application: Application, width: int, folds: bool
) -> None:
    application.execute(f"CREATE TABLE t ({', '.join(f'c{i} float8' for i in range(width))})")
    table = Buffered(database)
    application.execute("INSERT INTO t (c0) VALUES (0), (0), ('-0'), ('-0')")
    assert table.pays(1) is folds
    assert table.read(1).num_rows == (2 if folds else 4)


def test_how_long_it_is(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (v int)")
    table = Buffered(database)
    application.execute("INSERT INTO t SELECT 1 FROM generate_series(1, 500)")
    where = unseen(table.before).as_string()
    assert [is_long(database, table.source.oid, where, most) for most in (499, 500)] == [
        True,
        False,
    ]


def test_a_table_without_stored_columns(database: Database, application: Application) -> None:
    application.execute("CREATE TABLE t (p point)")
    table = Buffered(database)
    application.execute("INSERT INTO t VALUES (NULL), (NULL), (NULL)")
    application.execute("DELETE FROM t WHERE ctid IN (SELECT ctid FROM t LIMIT 2)")
    assert not table.pays(1)
    assert table.read(1)["_weight"].to_pylist() == [1, 1, 1, -1, -1]
