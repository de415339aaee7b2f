"""Served tables partitioned by ranges: the same rows as unpartitioned ones, in the right ranges."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from headrace.catalog import PostgresCatalog, new_relation_id
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import UserError
from headrace.publish import ranges as module
from headrace.publish.apply import apply_change
from headrace.publish.partition_scheme import Scheme, as_scheme, parse_scheme
from headrace.publish.partitioning import check_partition
from headrace.publish.ranges import range_partitions
from headrace.publish.replace import replace_served
from headrace.publish.served import create_served
from headrace.relations.visible_change import VisibleChange
from headrace.source.connection import Database
from headrace.store import WEIGHT
from headrace.types import Type

Row = tuple[Any, ...]
Sql = psycopg.Connection[Any]
postgres = pytest.mark.postgres

DATE, INTEGER, SMALL, BIG = Type("date"), Type("integer"), Type("smallint"), Type("bigint")
TIME, ZONED = Type("timestamp"), Type("timestamptz")


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("region", Scheme("region")),
        ('A "b" c', Scheme('A "b" c')),
        ("month(day)", Scheme("day", unit="month")),
        (" YEAR ( day ) ", Scheme(" day ", unit="year")),
        ('week("day(x)")', Scheme("day(x)", unit="week")),
        ("range(id, 1000)", Scheme("id", width=1000)),
        ("range(a, b, 5)", Scheme("a, b", width=5)),
        ("range(id, 1000000000000000000)", Scheme("id", width=10**18)),
        ("source(range(id, 18446744073709551615))", Scheme("id", None, 2**64 - 1, True)),
        ('"month(day)"', Scheme("month(day)")),
        ('"""x"""', Scheme('"x"')),
        ("hour(day)", Scheme("hour(day)")),
    ],
)
def test_schemes(text: str, scheme: Scheme) -> None:
    assert parse_scheme(text) == scheme
    kept = as_scheme(text)
    assert kept is not None
    assert parse_scheme(kept) == scheme
    assert as_scheme(kept) == kept


@pytest.mark.parametrize("text", ["", "range(id, 0)", 3, None])
def test_what_is_no_scheme(text: Any) -> None:
    assert as_scheme(text) is None


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"partition_by": "month(x)"}, "unknown-column"),
        ({"partition_by": "month(n)"}, "unsupported-type"),
        ({"partition_by": "range(d, 10)"}, "unsupported-type"),
        ({"partition_by": "t"}, "unsupported-type"),
        ({"partition_by": "n", "partition_ahead": 2}, "invalid-option"),
        ({"partition_drop_empty": True}, "invalid-option"),
    ],
)
def test_what_is_refused(options: dict[str, Any], code: str) -> None:
    columns = tuple(
        OutputColumn(name, type_, type_.sql)
        for name, type_ in (("d", DATE), ("n", INTEGER), ("t", TIME))
    )
    with pytest.raises(UserError) as raised:
        check_partition(columns, options)
    assert raised.value.code == code
    check_partition(columns, {"partition_by": "week(t)", "partition_ahead": 2})
    check_partition(columns, {"partition_by": "n", "partition_drop_empty": True})


def test_empty_partitions_are_not_those_of_ranges_alone() -> None:
    columns = (OutputColumn("n", INTEGER, INTEGER.sql),)
    for options, message in (
        (
            {"partition_drop_empty": True},
            "partition_drop_empty is for stream tables that are partitioned",
        ),
        (
            {"partition_by": "n", "partition_ahead": 2},
            "partition_ahead is for stream tables that are partitioned by ranges",
        ),
    ):
        with pytest.raises(UserError) as raised:
            check_partition(columns, options)
        assert raised.value.message == message


@pytest.fixture
def sql(dsn: str) -> Iterator[Sql]:
    PostgresCatalog.open(Database(dsn).connect).close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def table(type_: Type, by: str | None, *, keyed: bool = False, **options: Any) -> StreamTable:
    columns = tuple(
        OutputColumn(name, one, one.sql) for name, one in (("p", type_), ("k", INTEGER))
    )
    if by is not None:
        options["partition_by"] = by
    key = ("p", "k") if keyed else ()
    name = f"t{new_relation_id()}"
    return StreamTable(new_relation_id(), "public", name, "", columns, (), key=key, options=options)


def change(of: StreamTable, *rows: Row) -> VisibleChange:
    """The rows, each with its weight first."""
    fields = [(f"c{i}", column.type.arrow) for i, column in enumerate(of.columns, 1)]
    schema = pa.schema([(WEIGHT, pa.int64()), *fields])
    return VisibleChange.of(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    )


def publish(sql: Sql, of: StreamTable, *rows: Row) -> None:
    with sql.transaction():
        apply_change(sql, of, change(of, *rows))


def shown(sql: Sql, of: StreamTable) -> Counter[Row]:
    return Counter(sql.execute(f"SELECT p, k FROM {of.name}").fetchall())


def bounds(sql: Sql, of: StreamTable) -> set[tuple[str | None, str | None]]:
    """The ranges that there are; that of the default partition has no bounds at all."""
    return {(one.low, one.high) for one in range_partitions(sql, of)}


DAYS = [date(2023, 12, 25) + timedelta(days=n) for n in range(0, 500, 9)]
FIRST = datetime(2024, 2, 27, 23, 59, 59, 999999, tzinfo=UTC)
TIMES = [FIRST + timedelta(hours=n) for n in range(0, 900, 37)]
EDGES = [-(2**31), -(2**31) + 1, -1, 0, 1, 999, 1000, 2**31 - 1]
# Their quotients by a width have more digits than PostgreSQL's division computes.
LARGE = [15 * 10**17 + 999_999, -(15 * 10**17) - 1, 2**53 + 1, -(2**63), 2**63 - 1, 0, 1_000_000]
CASES: list[tuple[Type, str, list[Any]]] = [
    *((DATE, f"{unit}(p)", DAYS) for unit in ("day", "week", "month", "year")),
    (TIME, "month(p)", [one.replace(tzinfo=None) for one in TIMES]),
    (ZONED, "day(p)", TIMES),
    (INTEGER, "range(p, 1000)", EDGES),
    (SMALL, "range(p, 40000)", [-(2**15), -1, 0, 2**15 - 1]),
    (BIG, "range(p, 1000000)", LARGE),
    (BIG, "range(p, 2)", LARGE),
    (BIG, "range(p, 7)", LARGE),
    (BIG, "range(p, 2000000000000000000)", LARGE),
]


@postgres
@pytest.mark.parametrize("keyed", [False, True], ids=["bag", "keyed"])
@pytest.mark.parametrize(("type_", "by", "values"), CASES, ids=[by for _, by, _ in CASES])
def test_random_changes_show_the_same_rows(
    sql: Sql, type_: Type, by: str, values: list[Any], keyed: bool
) -> None:
    sql.execute("SET timezone = 'Asia/Tokyo'")
    chance = random.Random(by)
    parted, plain = table(type_, by, keyed=keyed), table(type_, None, keyed=keyed)
    for one in (parted, plain):
        create_served(sql, one)
    rows: Counter[Row] = Counter()
    for _ in range(6):
        going = chance.sample(sorted(rows, key=str), min(len(rows), 5))
        step: Counter[Row] = Counter(dict.fromkeys(going, -1))
        for _ in range(8):
            row = (chance.choice([*values, None]), chance.randint(1, 6))
            if not keyed or (row not in rows and row not in step):
                step[row] += 1
        step = Counter({row: weight for row, weight in step.items() if weight})
        for one in (parted, plain):
            publish(sql, one, *((weight, *row) for row, weight in step.items()))
        rows.update(step)
        rows = +rows
        assert shown(sql, parted) == shown(sql, plain) == rows
    for one in range_partitions(sql, parted):
        if one.is_default:
            name = one.name.as_string(sql)
            assert sql.execute(f"SELECT FROM {name} WHERE p IS NOT NULL").fetchall() == []


@postgres
def test_what_ranges_are_made(sql: Sql) -> None:
    cases: list[tuple[Type, str, Any, set[tuple[str | None, str | None]]]] = [
        (DATE, "day(p)", date(2024, 2, 29), {("2024-02-29", "2024-03-01")}),
        (DATE, "week(p)", date(2024, 2, 29), {("2024-02-26", "2024-03-04")}),
        (DATE, "month(p)", date(2024, 2, 29), {("2024-02-01", "2024-03-01")}),
        (DATE, "year(p)", date(2024, 2, 29), {("2024-01-01", "2025-01-01")}),
        (INTEGER, "range(p, 100)", -1, {("-100", "0")}),
        (INTEGER, "range(p, 1000)", 2**31 - 1, {("2147483000", None)}),
        (SMALL, "range(p, 40000)", -5, {(None, "0")}),
        (DATE, "month(p)", None, {(None, None)}),
    ]
    for type_, by, value, made in cases:
        one = table(type_, by)
        create_served(sql, one)
        publish(sql, one, (1, value, 1))
        assert bounds(sql, one) == made, by


@postgres
def test_ranges_are_made_ahead_and_dropped_when_they_are_empty(sql: Sql, dsn: str) -> None:
    one = table(DATE, "month(p)", partition_ahead=2, partition_drop_empty=True)
    create_served(sql, one)
    publish(sql, one, (1, date(2024, 1, 31), 1), (1, None, 1))
    months = list(pairwise(f"2024-{month:02}-01" for month in range(1, 8)))
    default = {(None, None)}
    assert bounds(sql, one) == {*months[:3]} | default
    publish(sql, one, (1, date(2024, 2, 1), 1))
    assert bounds(sql, one) == {*months[:4]} | default
    publish(sql, one, (-1, date(2024, 2, 1), 1), (1, date(2024, 4, 1), 1))
    assert bounds(sql, one) == {*months[:1], *months[2:6]} | default
    with psycopg.connect(dsn) as reader:
        reader.execute(f"SELECT FROM {one.name}")
        publish(sql, one, (-1, date(2024, 1, 31), 1))
        assert months[0] in bounds(sql, one)
    publish(sql, one, (1, date(2024, 1, 31), 1))
    publish(sql, one, (-1, date(2024, 1, 31), 1), (-1, None, 1))
    assert bounds(sql, one) == {*months[2:6]}
    assert shown(sql, one) == {(date(2024, 4, 1), 1): 1}


@postgres
def test_many_ranges_leave_the_newest_their_own(sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RANGES", 3)
    one = table(INTEGER, "range(p, 10)", partition_drop_empty=True)
    create_served(sql, one)
    publish(sql, one, *((1, value, 1) for value in (55, 65, 75)))
    publish(sql, one, (1, 5, 1), (1, 85, 1), (1, 15, 2))
    made = {("50", "60"), ("60", "70"), ("70", "80"), ("80", "90")}
    assert bounds(sql, one) == made | {(None, None)}
    # What was left out has rows in the default partition: it does not get one of its own later.
    publish(sql, one, (-1, 85, 1), (-1, 75, 1), (-1, 65, 1), (1, 16, 1))
    assert bounds(sql, one) == {("50", "60"), (None, None)}
    publish(sql, one, (-1, 15, 2), (1, 25, 1), (1, 95, 1))
    assert bounds(sql, one) == {("50", "60"), ("20", "30"), ("90", "100"), (None, None)}
    rows = {(55, 1): 1, (5, 1): 1, (16, 1): 1, (25, 1): 1, (95, 1): 1}
    assert shown(sql, one) == rows
    publish(sql, one, *((-weight, *row) for row, weight in rows.items()))
    assert shown(sql, one) == {}


@postgres
def test_a_partition_that_something_depends_on_stays(sql: Sql) -> None:
    one = table(INTEGER, "range(p, 10)", partition_drop_empty=True)
    create_served(sql, one)
    publish(sql, one, *((1, value, 1) for value in (5, 15, 25)))
    first = next(each.name for each in range_partitions(sql, one) if each.low == "0")
    sql.execute(
        psycopg.sql.SQL("CREATE VIEW v{} AS SELECT p FROM {}").format(
            psycopg.sql.SQL(one.name), first
        )
    )
    publish(sql, one, *((-1, value, 1) for value in (5, 15, 25)), (1, 35, 1))
    assert bounds(sql, one) == {("0", "10"), ("30", "40")}
    assert shown(sql, one) == {(35, 1): 1}


@postgres
def test_only_ranges_with_changes_are_touched(sql: Sql) -> None:
    one = table(DATE, "month(p)", keyed=True)
    create_served(sql, one)
    publish(sql, one, *((1, date(2024, month, 3), 1) for month in range(1, 13)))
    with sql.transaction():
        apply_change(sql, one, change(one, (-1, date(2024, 5, 3), 1), (1, date(2024, 6, 3), 2)))
        locked = sql.execute(
            "SELECT count(DISTINCT c.oid) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
            " WHERE l.pid = pg_backend_pid() AND c.relkind = 'r' AND c.relname ~ '^headrace_part_'"
        ).fetchone()
    assert locked == (2,)


@postgres
@pytest.mark.parametrize("new", [None, "p", "month(p)", "year(p)"])
def test_another_scheme_makes_the_table_again(sql: Sql, new: str | None) -> None:
    old = table(DATE, "month(p)")
    create_served(sql, old)
    publish(sql, old, (1, date(2024, 5, 3), 1), (1, date(2024, 6, 3), 2))
    options = {} if new is None else {"partition_by": new}
    made = replace(old, relation=new_relation_id(), options=options)
    with sql.transaction():
        rows = change(made, (1, date(2024, 5, 3), 1), (1, date(2025, 6, 3), 2))
        replace_served(sql, old, made, rows)
    assert shown(sql, made) == {(date(2024, 5, 3), 1): 1, (date(2025, 6, 3), 2): 1}
    publish(sql, made, (-1, date(2024, 5, 3), 1))
    assert shown(sql, made) == {(date(2025, 6, 3), 2): 1}


@postgres
def test_a_table_without_partitions_is_never_dropped(sql: Sql) -> None:
    one = table(DATE, None, partition_drop_empty=True)
    create_served(sql, one)
    publish(sql, one, (1, date(2024, 5, 3), 1))
    publish(sql, one, (-1, date(2024, 5, 3), 1))
    assert shown(sql, one) == {}


def own_ranges(sql: Sql, of: StreamTable) -> set[str | None]:
    """The lower bounds of partitions, and the default partition as None."""
    return {None if one.is_default else one.low for one in range_partitions(sql, of)}


def in_default(sql: Sql, of: StreamTable) -> Counter[Any]:
    """The values, NULL aside, that the default partition has rows of."""
    (name,) = (one.name for one in range_partitions(sql, of) if one.is_default)
    text = psycopg.sql.SQL("SELECT p FROM {} WHERE p IS NOT NULL").format(name)
    return Counter(value for (value,) in sql.execute(text).fetchall())


@postgres
@pytest.mark.parametrize("keyed", [False, True], ids=["bag", "keyed"])
def test_a_reader_of_the_default_partition_delays_no_publish(
    sql: Sql, dsn: str, keyed: bool
) -> None:
    one = table(INTEGER, "range(p, 10)", keyed=keyed, partition_ahead=1)
    create_served(sql, one)
    publish(sql, one, (1, 5, 1), (1, None, 1))
    rows: Counter[Row] = Counter({(5, 1): 1, (None, 1): 1})
    assert own_ranges(sql, one) == {"0", "10", None}
    # Without a bound of its own, a publish would fail after this time.
    sql.execute("SET lock_timeout = '5s'")
    with psycopg.connect(dsn) as reader:
        reader.execute("SET lock_timeout = '5s'")
        reader.execute(f"SELECT FROM {one.name}")
        for step in ({(25, 1): 1}, {(25, 1): -1, (25, 2): 1, (35, 1): 1, (45, 1): 1}):
            publish(sql, one, *((weight, *row) for row, weight in step.items()))
            rows.update(step)
            assert shown(sql, one) == +rows
        assert own_ranges(sql, one) == {"0", "10", None}
        assert in_default(sql, one) == {25: 1, 35: 1, 45: 1}
        dropping = replace(one, options={**one.options, "partition_drop_empty": True})
        for weight in (1, -1):
            publish(sql, dropping, (weight, None, 7), (weight, 25, 7))
        assert len(reader.execute(f"SELECT FROM {one.name}").fetchall()) == 5
    assert sql.execute("SHOW lock_timeout").fetchone() == ("5s",)
    # Rows move with the next publish that makes a range, those of ranges without a change, too.
    step = {(45, 1): -1, (45, 3): 1, (55, 1): 1, (None, 2): 1}
    publish(sql, one, *((weight, *row) for row, weight in step.items()))
    rows.update(step)
    assert shown(sql, one) == +rows
    assert own_ranges(sql, one) == {"0", "10", "20", "30", "40", "50", "60", None}
    assert in_default(sql, one) == {}
    publish(sql, one, (-1, 25, 2), (-1, 35, 1), (1, 35, 7))
    assert shown(sql, one)[35, 7] == 1
    assert in_default(sql, one) == {}


@postgres
@pytest.mark.parametrize("kind", ["trigger", "foreign key"])
def test_rows_that_users_watch_stay_in_the_default_partition(
    sql: Sql, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(module, "MOST_RANGES", 2)
    options = {"key": "p, k", "primary_key": True, "partition_drop_empty": True}
    one = table(INTEGER, "range(p, 10)", **options)
    create_served(sql, one)
    publish(sql, one, (1, 5, 1), (1, 35, 1))
    publish(sql, one, (1, 25, 1))
    publish(sql, one, (-1, 35, 1))
    assert own_ranges(sql, one) == {"0", None}
    assert in_default(sql, one) == {25: 1}
    sql.execute("CREATE TABLE child (p int, k int)")
    if kind == "trigger":
        sql.execute(
            "INSERT INTO child VALUES (25, 1);"
            " CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN DELETE FROM child WHERE child.p = OLD.p; RETURN NULL; END';"
            f" CREATE TRIGGER forget AFTER DELETE ON {one.name}"
            " FOR EACH ROW EXECUTE FUNCTION forget()"
        )
    else:
        sql.execute(
            f"ALTER TABLE child ADD FOREIGN KEY (p, k) REFERENCES {one.name} ON DELETE CASCADE;"
            " INSERT INTO child VALUES (25, 1)"
        )
    publish(sql, one, (1, 26, 1), (1, 45, 1))
    assert sql.execute("TABLE child").fetchall() == [(25, 1)]
    assert own_ranges(sql, one) == {"0", "40", None}
    assert in_default(sql, one) == {25: 1, 26: 1}
    assert shown(sql, one) == {(5, 1): 1, (25, 1): 1, (26, 1): 1, (45, 1): 1}


@postgres
def test_a_reader_of_the_default_partition_delays_no_rebuild(sql: Sql, dsn: str) -> None:
    old = table(INTEGER, "range(p, 10)")
    create_served(sql, old)
    publish(sql, old, (1, 5, 1), (1, None, 1))
    sql.execute("SET lock_timeout = '5s'")
    first, new = (replace(old, relation=new_relation_id()) for _ in range(2))
    with psycopg.connect(dsn) as reader:
        reader.execute(f"SELECT FROM {old.name}")
        with sql.transaction():
            replace_served(sql, old, first, change(first, (1, 5, 2), (1, 15, 1)))
    assert shown(sql, first) == {(5, 2): 1, (15, 1): 1}
    assert in_default(sql, first) == {15: 1}
    with sql.transaction():
        replace_served(sql, first, new, change(new, (1, 5, 2), (1, 15, 1), (1, 25, 1)))
    assert own_ranges(sql, new) == {"0", "10", "20", None}
    assert in_default(sql, new) == {}
    assert shown(sql, new) == {(5, 2): 1, (15, 1): 1, (25, 1): 1}


@postgres
def test_ranges_ahead_meet_rows_in_the_default_partition(
    sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_RANGES", 2)
    one = table(INTEGER, "range(p, 10)", partition_drop_empty=True)
    create_served(sql, one)
    publish(sql, one, (1, 5, 1), (1, 35, 1))
    publish(sql, one, (1, 25, 1))
    assert in_default(sql, one) == {25: 1}
    publish(sql, one, (-1, 35, 1))
    assert own_ranges(sql, one) == {"0", None}
    ahead = replace(one, options={**one.options, "partition_ahead": 2})
    publish(sql, ahead, (1, 6, 1))
    assert own_ranges(sql, one) == {"0", "10", "20", None}
    assert in_default(sql, one) == {}
    assert shown(sql, one) == {(5, 1): 1, (6, 1): 1, (25, 1): 1}


@postgres
@pytest.mark.parametrize("type_", [INTEGER, DATE], ids=["range", "day"])
def test_the_first_filling_makes_as_many_ranges_as_there_may_be(
    sql: Sql, monkeypatch: pytest.MonkeyPatch, type_: Type
) -> None:
    monkeypatch.setattr(module, "MOST_RANGES", 3)
    one = table(type_, "range(p, 1)" if type_ is INTEGER else "day(p)")
    create_served(sql, one)
    # In the order of texts, 9 and -2 come after 10 and -1.
    numbers = [-2, -1, 7, 8, 9, 10]
    values = [n if type_ is INTEGER else date(2024, 1, 15) + timedelta(days=n) for n in numbers]
    publish(sql, one, *((1, value, 1) for value in values))
    newest = {str(value) for value in values[3:]}
    assert own_ranges(sql, one) == {*newest, None}
    assert in_default(sql, one) == Counter(values[:3])
    publish(sql, one, *((-1, value, 1) for value in values[1:]), (1, values[0], 2))
    assert shown(sql, one) == {(values[0], 1): 1, (values[0], 2): 1}
