"""Partitioned served tables: the same rows as unpartitioned ones, and only what changes is touched.

Every change is applied to two served tables, one of them partitioned, which must be equal as bags.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.catalog import PostgresCatalog, new_relation_id
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import InternalError, UserError
from headrace.publish import partitions as module
from headrace.publish.apply import apply_change
from headrace.publish.partitions import partitions
from headrace.publish.replace import rename, replace_served
from headrace.publish.served import create_served, drop_served, index_key, index_name
from headrace.relations.visible_change import VisibleChange
from headrace.source.connection import Database
from headrace.store import WEIGHT
from headrace.types import Type
from headrace.verify.served import read_served

pytestmark = pytest.mark.postgres

Row = tuple[Any, ...]

INTEGER = Type("integer")
TEXT = Type("text")
SHORT = Type("character varying", length=20)
# Words that a careless quoting, naming or encoding would take for another.
WORDS = (None, "", "null", "NULL", "a'b", 'a"b', "a\\b", "%s{}", "\U0001f600ß" * 20, "x" * 1500)


# Counted for the session, until it has reported them: of the whole table, and by an index.
SCANS = """
SELECT relname, ARRAY[seq_scan, idx_scan] FROM pg_stat_xact_user_tables
WHERE relname ~ '^headrace_part_'
"""


def table(
    name: str, *columns: tuple[str, Type], key: tuple[str, ...] = (), by: str | None = None
) -> StreamTable:
    outputs = tuple(OutputColumn(name, type_, type_.sql) for name, type_ in columns)
    options = {} if by is None else {"partition_by": by}
    return StreamTable(
        new_relation_id(), "public", name, "", outputs, inputs=(), key=key, options=options
    )


def change(of: StreamTable, *rows: Row) -> VisibleChange:
    """The rows with their weights, each weight first."""
    fields = [(f"c{i}", column.type.arrow) for i, column in enumerate(of.columns, 1)]
    schema = pa.schema([(WEIGHT, pa.int64()), *fields])
    names = schema.names
    return VisibleChange.of(
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    )


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    PostgresCatalog.open(Database(dsn).connect).close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def publish(sql: psycopg.Connection[Any], of: StreamTable, *rows: Row) -> None:
    with sql.transaction():
        apply_change(sql, of, change(of, *rows))


def shown(sql: psycopg.Connection[Any], of: StreamTable) -> Counter[Row]:
    return Counter(sql.execute(f'SELECT * FROM {of.schema}."{of.name}"').fetchall())


def values(sql: psycopg.Connection[Any], of: StreamTable) -> set[frozenset[str | None]]:
    return {one.values for one in partitions(sql, of)}


def names(sql: psycopg.Connection[Any], of: StreamTable) -> dict[str | None, str]:
    """The table of every value that has one."""
    return {value: one.name.as_string(sql) for one in partitions(sql, of) for value in one.values}


BAG = (("g", TEXT), ("n", INTEGER))
KEYED = (("g", SHORT), ("k", INTEGER), ("n", INTEGER))


@pytest.mark.parametrize(
    ("columns", "key", "by", "is_keyed"),
    [
        (BAG, (), "g", False),
        (KEYED, ("g", "k"), "g", True),
        (KEYED, ("k",), "g", False),
        (KEYED, ("k",), "k", True),
    ],
    ids=["bag", "key with the column", "key without it", "key that is the column"],
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_changes_show_the_same_rows(
    sql: psycopg.Connection[Any],
    columns: tuple[tuple[str, Type], ...],
    key: tuple[str, ...],
    by: str,
    is_keyed: bool,
    seed: int,
) -> None:
    chance = random.Random(seed)
    plain = table(f"plain_{seed}", *columns, key=key)
    parted = table(f"parted_{seed}", *columns, key=key, by=by)
    assert bool(index_key(parted)) is is_keyed
    create_served(sql, plain)
    create_served(sql, parted)
    words = [word for word in WORDS if word is None or columns[0][1] is TEXT or len(word) <= 20]
    has: Counter[Row] = Counter()
    for _ in range(6):
        now = _next(chance, has, columns, key, words)
        rows = [(now[row] - has[row], *row) for row in {*now, *has} if now[row] != has[row]]
        chance.shuffle(rows)
        publish(sql, plain, *rows)
        publish(sql, parted, *rows)
        has = now
        assert shown(sql, parted) == shown(sql, plain) == has
    drop_served(sql, plain)
    drop_served(sql, parted)
    (left,) = sql.execute("SELECT count(*) FROM pg_class WHERE relname ~ '^headrace_'").fetchall()
    assert left == (0,)


def _next(
    chance: random.Random,
    has: Counter[Row],
    columns: tuple[tuple[str, Type], ...],
    key: tuple[str, ...],
    words: list[str | None],
) -> Counter[Row]:
    """Some rows less, some more, some with another value, and each key once if there is one."""
    now = Counter(
        {
            row: chance.choice((0, count, count))
            for row, count in has.items()
            if chance.random() < 0.9
        }
    )
    numbers = (None, 0, 1, -7)
    for _ in range(chance.randrange(8)):
        rest = tuple(chance.choice(numbers) for _ in columns[1:])
        now[chance.choice(words), *rest] += chance.choice((1, 1, 3))
    if not key:
        return +now
    places = [[name for name, _ in columns].index(name) for name in key]
    by_key = {tuple(row[place] for place in places): row for row in +now}
    return Counter(dict.fromkeys(by_key.values(), 1))


def test_there_is_a_partition_a_value_and_one_of_null(sql: psycopg.Connection[Any]) -> None:
    parted = table("parted", *BAG, by="g")
    create_served(sql, parted)
    assert values(sql, parted) == set()
    publish(sql, parted, (1, "b", 1), (2, "it's", 2), (1, None, 3), (1, "", 4))
    assert values(sql, parted) == {frozenset({value}) for value in ("b", "it's", None, "")}
    publish(sql, parted, (-1, "b", 1), (1, "c", 1))
    assert values(sql, parted) >= {frozenset({"b"}), frozenset({"c"})}, "an empty one stays"
    for value, leaf in names(sql, parted).items():
        where = "g IS NULL" if value is None else "g = %(value)s"
        plan = sql.execute(
            f"EXPLAIN SELECT * FROM parted WHERE {where}", {"value": value}
        ).fetchall()
        scanned = {
            line.split(" on ")[1].split()[0] for (line,) in plan if " on headrace_part" in line
        }
        assert scanned == {leaf.split(".")[1].strip('"')}, (
            "reads of one value look at one partition"
        )


@pytest.mark.parametrize(
    ("type_", "some"),
    [
        (Type("boolean"), [True, False, None]),
        (Type("smallint"), [-32768, 0, None]),
        (Type("bigint"), [-(2**63), 2**63 - 1]),
        (Type("date"), ["0001-01-01", "2024-02-29", "9999-12-31"]),
        (Type("uuid"), ["00000000-0000-0000-0000-000000000001", None]),
        (Type("character", length=3), ["a", "ab", "", "'"]),
        (Type("character varying", length=9), ["a ", "a", "\\"]),
    ],
    ids=lambda one: one.kind if isinstance(one, Type) else "",
)
def test_values_of_every_type_come_and_go(
    sql: psycopg.Connection[Any], type_: Type, some: list[Any]
) -> None:
    read = [date.fromisoformat(one) if type_.kind == "date" else one for one in some]
    parted = table("parted", ("g", type_), ("n", INTEGER), by="g")
    create_served(sql, parted)
    publish(sql, parted, *((2, value, 1) for value in read))
    publish(sql, parted, *((1, value, 2) for value in read))
    assert len(values(sql, parted)) == len(some), "made once"
    publish(sql, parted, *((-2, value, 1) for value in read))
    publish(sql, parted, *((-1, value, 2) for value in read))
    assert not shown(sql, parted)


@pytest.mark.parametrize("key", [(), ("g", "k")])
def test_only_partitions_with_changes_are_touched(
    sql: psycopg.Connection[Any], key: tuple[str, ...]
) -> None:
    parted = table("parted", *KEYED, key=key, by="g")
    create_served(sql, parted)
    publish(sql, parted, *((1, f"v{i % 50}", i, i) for i in range(500)), (1, None, 1, 1))
    leaves = names(sql, parted)
    with sql.transaction():
        before = dict(sql.execute(SCANS).fetchall())
        moved = [(-1, "v3", 3, 3), (1, "v7", 3, 3), (-1, "v8", 8, 8), (1, "v8", 8, 9)]
        apply_change(sql, parted, change(parted, *moved))
        locked = sql.execute(
            "SELECT relation::regclass::text FROM pg_locks"
            " WHERE pid = pg_backend_pid() AND relation::regclass::text ~ '^headrace_part_r[^_]*$'"
        ).fetchall()
        scans = dict(sql.execute(SCANS).fetchall())
    expected = {leaves[value].split(".")[1].strip('"') for value in ("v3", "v7", "v8")}
    assert {name for (name,) in locked} == expected
    assert {name for name, found in scans.items() if found != before[name]} <= expected
    whole = [scans[name][0] - before[name][0] for name in expected]
    assert not any(whole), "rows are found through the index"


def test_values_beyond_the_limit_share_a_partition(
    sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PARTITIONS", 3)
    parted = table("parted", *BAG, by="g")
    create_served(sql, parted)
    publish(sql, parted, (1, "b", 1), (1, "a", 1))
    publish(sql, parted, (1, "c", 1), (1, "d", 1), (1, "d", 2), (1, None, 1))
    # Of two new values the one with more rows has a partition of its own, and NULL comes first.
    assert values(sql, parted) == {
        frozenset({"a"}),
        frozenset({"b"}),
        frozenset({None}),
        frozenset(),
    }
    publish(sql, parted, (-1, "d", 1), (1, "e", 1), (-1, "a", 1), (1, "", 5))
    assert len(values(sql, parted)) == 4
    expected = [("b", 1), ("c", 1), ("d", 2), (None, 1), ("e", 1), ("", 5)]
    assert shown(sql, parted) == Counter(expected)
    publish(sql, parted, *((-1, *row) for row in expected))
    assert not shown(sql, parted)


def test_no_reader_is_waited_for(
    sql: psycopg.Connection[Any], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PARTITIONS", 3)
    parted = table("parted", *BAG, by="g")
    create_served(sql, parted)
    publish(sql, parted, (1, "a", 1), (1, "b", 1))
    sql.execute("SET lock_timeout = '5s'")
    with psycopg.connect(dsn) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = reader.execute("SELECT g, n FROM parted ORDER BY g").fetchall()
        for value in ("c", "d", "e"):
            publish(sql, parted, (1, value, 1), (-1, "a", 1), (1, "a", 1))
            assert reader.execute("SELECT g, n FROM parted ORDER BY g").fetchall() == before
    assert values(sql, parted) == {*(frozenset({one}) for one in "abc"), frozenset()}
    assert shown(sql, parted) == Counter((one, 1) for one in "abcde")


def test_text_too_long_for_a_partition_is_kept_with_the_others(
    sql: psycopg.Connection[Any],
) -> None:
    parted = table("parted", *BAG, by="g")
    create_served(sql, parted)
    rest = random.Random(1)
    longest = "".join(chr(rest.randrange(0x100, 0xD000)) for _ in range(5000))
    fitting = "".join(chr(rest.randrange(33, 127)) for _ in range(module.MOST_VALUE_BYTES))
    publish(sql, parted, (1, longest, 1), (1, fitting, 2), (1, None, 3))
    assert values(sql, parted) == {frozenset({fitting}), frozenset({None}), frozenset()}
    publish(sql, parted, (-1, longest, 1), (1, longest, 4), (-1, fitting, 2))
    assert shown(sql, parted) == Counter([(longest, 4), (None, 3)])


def test_users_are_refused_at_the_table_and_at_each_partition(
    sql: psycopg.Connection[Any],
) -> None:
    parted = table("parted", *BAG, by="g")
    create_served(sql, parted)
    publish(sql, parted, (1, "a", 1), (1, None, 1))
    for name in ("parted", *names(sql, parted).values()):
        for text in (f"DELETE FROM {name}", f"TRUNCATE {name}", f"UPDATE {name} SET n = 2"):
            with pytest.raises(psycopg.Error) as caught:
                sql.execute(text)
            assert caught.value.sqlstate == "HR001"
    assert shown(sql, parted) == Counter([("a", 1), (None, 1)])


def test_verify_reads_all_partitions(sql: psycopg.Connection[Any], dsn: str) -> None:
    for parted in (table("parted", *BAG, by="g"), table("plain", *BAG)):
        create_served(sql, parted)
        publish(sql, parted, (2, "a", 1), (1, None, 2))
        with Database(dsn) as database:
            found = read_served(database, parted)
        assert Counter(tuple(row.values()) for row in found.to_pylist()) == Counter(
            {(-1, "a", 1): 2, (-1, None, 2): 1}
        )


def test_what_users_hung_on_it_reaches_new_partitions(sql: psycopg.Connection[Any]) -> None:
    parted = table("parted", *BAG, by="g")
    create_served(sql, parted)
    publish(sql, parted, (1, "a", 1))
    sql.execute("CREATE INDEX mine ON parted (n); GRANT SELECT ON parted TO PUBLIC")
    sql.execute("CREATE VIEW over AS SELECT g, n FROM parted")
    sql.execute("ALTER TABLE parted ADD CONSTRAINT small CHECK (n < 10)")
    publish(sql, parted, (1, "b", 2))
    indexed = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'mine'::regclass"
    assert sql.execute(indexed).fetchone() == (2,)
    assert sql.execute("SELECT count(*) FROM over").fetchone() == (2,)
    with pytest.raises(psycopg.errors.CheckViolation):
        publish(sql, parted, (1, "c", 11))


def test_a_table_that_somebody_else_wrote_is_reported(sql: psycopg.Connection[Any]) -> None:
    parted = table("parted", *BAG, by="g")
    create_served(sql, parted)
    publish(sql, parted, (1, "a", 1), (1, "b", 1))
    with sql.transaction():
        sql.execute("SET LOCAL headrace.publishing = 'on'; DELETE FROM parted WHERE g = 'a'")
    with pytest.raises(InternalError) as caught:
        publish(sql, parted, (-1, "a", 1), (1, "b", 2))
    assert caught.value.code == "invariant"
    assert shown(sql, parted) == Counter([("b", 1)])


def test_an_existing_key_is_reported(sql: psycopg.Connection[Any]) -> None:
    """Also by a change that only adds rows; and an index of the user's own is not ours."""
    parted = table("parted", *KEYED, key=("g", "k"), by="g")
    create_served(sql, parted)
    publish(sql, parted, (1, "a", 1, 1), (1, "b", 1, 1))
    with pytest.raises(InternalError, match="is not as it was published"):
        publish(sql, parted, (1, "a", 1, 2), (1, "c", 1, 1))
    sql.execute("CREATE UNIQUE INDEX mine ON parted (g, n)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        publish(sql, parted, (1, "a", 2, 1))
    assert shown(sql, parted) == Counter([("a", 1, 1), ("b", 1, 1)])


def test_a_rebuilt_table_keeps_its_partitions(sql: psycopg.Connection[Any]) -> None:
    old = table("parted", *KEYED, key=("g", "k"), by="g")
    create_served(sql, old)
    publish(sql, old, (1, "a", 1, 1), (1, "b", 1, 1), (1, None, 2, 2))
    sql.execute("CREATE VIEW over AS SELECT g, n FROM parted")
    before = names(sql, old)
    place = "SELECT tableoid, ctid, xmin FROM parted WHERE g = 'a'"
    kept = sql.execute(place).fetchone()
    new = replace(old, relation=new_relation_id())
    rows = [(1, "a", 1, 1), (1, "c", 1, 7), (1, None, 2, 3)]
    with sql.transaction():
        replace_served(sql, old, new, change(new, *rows))
    assert shown(sql, new) == Counter(tuple(row) for _, *row in rows)
    assert names(sql, new).items() >= before.items()
    assert sql.execute(place).fetchone() == kept, "a row that is in both is not touched"
    publish(sql, new, (-1, "c", 1, 7), (1, "c", 1, 8))
    assert sql.execute(f"SELECT to_regclass('{index_name(new)}')").fetchone() != (None,)


def test_other_columns_come_and_go_in_place(sql: psycopg.Connection[Any]) -> None:
    old = table("parted", *KEYED, key=("g", "k"), by="g")
    create_served(sql, old)
    publish(sql, old, (1, "a", 1, 1), (1, "b", 1, 1))
    before = names(sql, old)
    new = table("parted", ("g", SHORT), ("m", TEXT), ("k", Type("bigint")), key=("g",), by="g")
    with sql.transaction():
        replace_served(sql, old, new, change(new, (1, "a", "x", 1), (1, "c", "y", 2)))
    publish(sql, new, (-1, "a", "x", 1), (1, "a", "z", 1), (1, "d", "z", 1))
    found = sql.execute("SELECT g, m, k FROM parted ORDER BY g").fetchall()
    assert found == [("a", "z", 1), ("c", "y", 2), ("d", "z", 1)]
    assert names(sql, new)["a"] == before["a"]


@pytest.mark.parametrize(
    ("before", "after"), [(None, "g"), ("g", None), ("g", "k"), ("k", "g")], ids=str
)
def test_other_partitions_make_the_table_again(
    sql: psycopg.Connection[Any], before: str | None, after: str | None
) -> None:
    old = table("parted", *KEYED, ("gone", INTEGER), key=("g", "k"), by=before)
    create_served(sql, old)
    publish(sql, old, (1, "a", 1, 1, 1), (1, "b", 1, 1, 1))
    sql.execute("CREATE INDEX mine ON parted (n); CREATE INDEX lost ON parted (gone)")
    sql.execute("GRANT SELECT ON parted TO PUBLIC; GRANT SELECT (n) ON parted TO pg_monitor")
    sql.execute("ALTER TABLE parted ADD CONSTRAINT small CHECK (n < 100)")
    sql.execute("COMMENT ON TABLE parted IS 'it''s mine'; COMMENT ON COLUMN parted.n IS 'number'")
    new = table("parted", *KEYED, key=("g", "k"), by=after)
    rows = [(1, "a", 1, 1), (1, None, 1, 7)]
    with sql.transaction():
        replace_served(sql, old, new, change(new, *rows))
    publish(sql, new, (-1, "a", 1, 1), (1, "a", 1, 2))
    assert shown(sql, new) == Counter([("a", 1, 2), (None, 1, 7)])
    kind = "SELECT relkind::text FROM pg_class WHERE relname = 'parted'"
    assert sql.execute(kind).fetchone() == ("r" if after is None else "p",)
    expected = {None: set(), "g": {"a", None}, "k": {"1"}}[after]
    assert set(names(sql, new)) == expected
    made = sql.execute(
        "SELECT to_regclass('mine') IS NOT NULL, to_regclass('lost') IS NULL,"
        " has_table_privilege('pg_read_all_stats', 'parted', 'SELECT'),"
        " has_column_privilege('pg_monitor', 'parted', 'n', 'SELECT'),"
        " obj_description('parted'::regclass), col_description('parted'::regclass, 3),"
        " (SELECT count(*) FROM pg_constraint"
        " WHERE conrelid = 'parted'::regclass AND contype = 'c')"
    ).fetchone()
    assert made == (True, True, True, True, "it's mine", "number", 1)


def test_views_keep_a_table_from_being_made_again(sql: psycopg.Connection[Any]) -> None:
    old = table("parted", *BAG)
    create_served(sql, old)
    publish(sql, old, (1, "a", 1))
    sql.execute("CREATE VIEW over AS SELECT g FROM parted")
    new = table("parted", *BAG, by="g")
    with pytest.raises(UserError) as caught, sql.transaction():
        replace_served(sql, old, new, change(new, (1, "a", 1)))
    assert caught.value.code == "has-dependents"
    assert "over" in str(caught.value.detail)
    assert shown(sql, old) == Counter([("a", 1)])


def test_a_unique_index_without_the_column_keeps_it_too(sql: psycopg.Connection[Any]) -> None:
    old = table("parted", *BAG)
    create_served(sql, old)
    sql.execute("CREATE UNIQUE INDEX mine ON parted (n)")
    new = table("parted", *BAG, by="g")
    with pytest.raises(UserError) as caught, sql.transaction():
        replace_served(sql, old, new, change(new, (1, "a", 1)))
    assert caught.value.code == "has-dependents"


def test_partitions_follow_to_another_schema(sql: psycopg.Connection[Any]) -> None:
    old = table("parted", *BAG, by="g")
    create_served(sql, old)
    publish(sql, old, (1, "a", 1))
    sql.execute("CREATE SCHEMA elsewhere")
    new = replace(old, schema="elsewhere", name='other "name"')
    with sql.transaction():
        rename(sql, old, new)
    publish(sql, new, (-1, "a", 1), (1, "a", 2), (1, "b", 1))
    found = sql.execute('SELECT g, n FROM elsewhere."other ""name""" ORDER BY g').fetchall()
    assert found == [("a", 2), ("b", 1)]
    assert {name.split(".")[0] for name in names(sql, new).values()} == {'"elsewhere"'}
