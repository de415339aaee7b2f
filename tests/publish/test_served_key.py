"""Keys of served tables: declared ones are kept by PostgreSQL, and small changes go by them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from headrace.catalog import PostgresCatalog
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import Transient, UserError
from headrace.publish.apply import apply_change
from headrace.publish.column_lists import as_list, listed
from headrace.publish.reindex import build_beside, take_over, tidy
from headrace.publish.replace import replace_served
from headrace.publish.served import create_served, index_name
from headrace.publish.served_key import check_key, served_key
from headrace.relations.visible_change import VisibleChange
from headrace.source.connection import Database
from headrace.types import INTEGER, Type

COLUMNS = tuple(OutputColumn(name, INTEGER, "integer") for name in ("k", "v", "w"))
Row = tuple[int | None, int | None, int | None]


def table(**options: Any) -> StreamTable:
    return StreamTable("r1", "public", "served", "", COLUMNS, (), options=options)


BAG = table()
DECLARED = table(key="k")
PAIR = table(key="v, k", include="w")
PRIMARY = table(key="k", primary_key=True, include="v")
PARTED = table(key="k, v", partition_by="k")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a", "a"),
        (" a ,  B", "a, B"),
        ('"a, b",c', '"a, b", c'),
        (["a, b", 'x"y'], '"a, b", "x""y"'),
        ("", None),
        ("a,", None),
        (",a", None),
        ("a, a", None),
        ([], None),
        ([1], None),
        (True, None),
    ],
)
def test_columns_as_an_option_keeps_them(given: Any, kept: str | None) -> None:
    assert as_list(given) == kept
    if kept is not None:
        assert as_list(kept) == as_list(list(listed(kept))) == kept


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"key": "x"}, "unknown-column"),
        ({"key": "k", "include": "x"}, "unknown-column"),
        ({"key": "f"}, "unsupported-type"),
        ({"key": "c"}, "unsupported-type"),
        ({"include": "v"}, "invalid-option"),
        ({"primary_key": True}, "invalid-option"),
        ({"key": "k, v", "include": "v"}, "invalid-option"),
        ({"key": "k", "partition_by": "v"}, "invalid-option"),
    ],
)
def test_what_can_be_no_key_is_refused(options: dict[str, Any], code: str) -> None:
    others = {"f": Type("double precision"), "c": Type("character", unsized=True)}
    columns = (*COLUMNS, *(OutputColumn(name, type_, "") for name, type_ in others.items()))
    with pytest.raises(UserError) as raised:
        check_key(columns, (), options)
    assert raised.value.code == code


def test_the_key_of_the_query_needs_no_declaration() -> None:
    check_key(COLUMNS, ("k",), {"include": "v", "primary_key": True})


def change(rows: dict[Row, int]) -> VisibleChange:
    columns = [list(rows.values()), *(list(column) for column in zip(*rows, strict=True))]
    types = (pa.int64(), pa.int32(), pa.int32(), pa.int32())
    return VisibleChange.of(
        pa.table(
            [pa.array(*one) for one in zip(columns, types, strict=True)],
            names=["_weight", "c1", "c2", "c3"],
        )
    )


Connection = psycopg.Connection[Any]
postgres = pytest.mark.postgres


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    """A database with a catalog."""
    found = Database(dsn)
    PostgresCatalog.open(found.connect).close()
    yield found
    found.close()


@pytest.fixture
def connection(database: Database, dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn) as opened:
        yield opened


def served(connection: Connection) -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute("SELECT k, v, w FROM served").fetchall())


def indexes(connection: Connection) -> list[str]:
    """The definitions of the served table's indexes, each with its name left out."""
    found = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'served' ORDER BY 1"
    ).fetchall()
    return [text.replace(name, "_") for name, text in found]


@postgres
@pytest.mark.parametrize("declared", [DECLARED, PAIR, PARTED], ids=["one", "pair", "parted"])
def test_rows_come_go_and_change_by_a_declared_key(
    connection: Connection, declared: StreamTable
) -> None:
    create_served(connection, declared)
    steps: list[dict[Row, int]] = [
        {(1, 1, 1): 1, (2, 2, 2): 1, (None, None, 3): 1},
        {(1, 1, 1): -1, (1, 1, 5): 1, (3, 3, 3): 1},
        {(None, None, 3): -1, (None, None, 4): 1, (2, 2, 2): -1},
        {(4, 4, None): 1},
    ]
    rows: Counter[Any] = Counter()
    for step in steps:
        apply_change(connection, declared, change(step))
        rows.update(step)
        assert served(connection) == +rows


@postgres
@pytest.mark.parametrize("declared", [DECLARED, PRIMARY, PARTED], ids=["one", "primary", "parted"])
@pytest.mark.parametrize(
    "broken",
    [
        {(1, 1, 8): 1},
        {(1, 1, 1): 1},
        {(9, 9, 1): 1, (9, 9, 2): 1},
        {(9, 9, 1): 2},
        {(1, 1, 1): -1, (1, 1, 8): 1, (1, 1, 9): 1},
        {(2, 2, 2): -1, (1, 1, 8): 1},
    ],
)
def test_a_key_that_does_not_hold_fails_the_publish(
    connection: Connection, declared: StreamTable, broken: dict[Row, int]
) -> None:
    create_served(connection, declared)
    apply_change(connection, declared, change({(1, 1, 1): 1, (2, 2, 2): 1}))
    connection.commit()
    with pytest.raises(UserError) as raised:
        apply_change(connection, declared, change(broken))
    connection.rollback()
    assert raised.value.code == "key-violated"
    assert "public.served" in raised.value.message
    assert str(9 if (9, 9, 1) in broken else 1) in (raised.value.detail or "")
    assert served(connection) == {(1, 1, 1): 1, (2, 2, 2): 1}


@postgres
def test_no_part_of_a_primary_key_is_null(connection: Connection) -> None:
    create_served(connection, PRIMARY)
    with pytest.raises(UserError) as raised:
        apply_change(connection, PRIMARY, change({(None, 1, 1): 1}))
    assert raised.value.code == "key-violated"


@postgres
def test_an_index_of_the_user_s_own_is_not_the_key(connection: Connection) -> None:
    create_served(connection, DECLARED)
    connection.execute("CREATE UNIQUE INDEX mine ON served (w)")
    apply_change(connection, DECLARED, change({(1, 1, 1): 1}))
    with pytest.raises(psycopg.errors.UniqueViolation, match="mine"):
        apply_change(connection, DECLARED, change({(2, 2, 1): 1}))


@postgres
def test_what_the_indexes_are(connection: Connection) -> None:
    create_served(connection, PAIR)
    assert indexes(connection) == [
        "CREATE UNIQUE INDEX _ ON public.served USING btree (v, k) INCLUDE (w) NULLS NOT DISTINCT"
    ]
    connection.rollback()
    create_served(connection, PRIMARY)
    assert indexes(connection) == [
        "CREATE UNIQUE INDEX _ ON public.served USING btree (k) INCLUDE (v)"
    ]
    kind = connection.execute(
        "SELECT contype FROM pg_constraint WHERE conrelid = 'served'::regclass AND contype = 'p'"
    )
    assert kind.fetchall() == [("p",)]


class Explaining(psycopg.Connection[Any]):
    """A session that asks for the plan of every statement that writes, before it runs it."""

    plans: list[Any]

    def execute(self, query: Any, *arguments: Any, **named: Any) -> Any:
        text = query.as_string(self) if isinstance(query, sql.Composable) else query
        if text.startswith(("DELETE", "INSERT", "WITH")):
            (found,) = super().execute(f"EXPLAIN (FORMAT JSON) {text}").fetchone()
            self.plans.append(found[0]["Plan"])
        return super().execute(query, *arguments, **named)


def nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@postgres
@pytest.mark.parametrize("keyed", [BAG, DECLARED, PAIR, PRIMARY], ids=["bag", "one", "pair", "pk"])
def test_a_small_change_goes_by_the_index(database: Database, dsn: str, keyed: StreamTable) -> None:
    with Explaining.connect(dsn) as connection:
        connection.plans = []
        create_served(connection, keyed)
        connection.execute("SET headrace.publishing = 'on'")
        connection.execute("INSERT INTO served SELECT i, i, i FROM generate_series(1, 20000) i")
        connection.execute("ANALYZE served")
        connection.plans.clear()
        apply_change(
            connection, keyed, change({(7, 7, 7): -1, (7, 7, 8): 1, (9, 9, 9): -1, (-1, -1, 0): 1})
        )
        found = [node for plan in connection.plans for node in nodes(plan)]
        assert served(connection)[7, 7, 8] == 1
    scans = [
        node
        for node in found
        if node.get("Relation Name") == "served" and "Scan" in node["Node Type"]
    ]
    assert scans, json.dumps(connection.plans)
    used = {node.get("Index Name") for node in scans if node["Node Type"] != "Tid Scan"}
    used |= {node.get("Index Name") for node in found if node["Node Type"] == "Bitmap Index Scan"}
    assert used - {None} == {index_name(keyed)}
    assert not [node for node in scans if node["Node Type"] == "Seq Scan"]
    arbiters = {name for node in found for name in node.get("Conflict Arbiter Indexes", ())}
    assert arbiters == (set() if keyed is BAG else {index_name(keyed)})


@postgres
def test_included_columns_are_read_from_the_index_alone(connection: Connection) -> None:
    create_served(connection, PAIR)
    connection.execute("SET headrace.publishing = 'on'")
    connection.execute("INSERT INTO served SELECT i, i, i FROM generate_series(1, 20000) i")
    connection.commit()
    connection.autocommit = True
    connection.execute("VACUUM ANALYZE served")
    plan = connection.execute(
        "EXPLAIN (FORMAT JSON) SELECT w FROM served WHERE v = 5 AND k = 5"
    ).fetchone()
    assert plan is not None
    assert plan[0][0]["Plan"]["Node Type"] == "Index Only Scan"


def switch(database: Database, old: StreamTable, new: StreamTable) -> None:
    """What an ALTER does, without the catalog."""
    build_beside(database, new)
    with database.session() as session, session.transaction():
        take_over(session, old, new)
    tidy(database, [new])


@postgres
def test_another_index_is_built_while_the_table_is_read(
    database: Database, connection: Connection, dsn: str
) -> None:
    create_served(connection, BAG)
    apply_change(connection, BAG, change({(1, 1, 1): 1, (2, 2, 2): 1}))
    connection.commit()
    unique = "CREATE UNIQUE INDEX _ ON public.served USING btree "
    with psycopg.connect(dsn) as reader:
        # In a transaction that goes on, it keeps the old index from being dropped.
        reader.execute("SELECT FROM served")
        build_beside(database, DECLARED)
        with database.session() as session, session.transaction():
            take_over(session, BAG, DECLARED)
        assert len(indexes(connection)) == 2
        assert reader.execute("SELECT count(*) FROM served").fetchall() == [(2,)]
        connection.commit()
    tidy(database, [DECLARED])
    assert indexes(connection) == [f"{unique}(k) NULLS NOT DISTINCT"]
    connection.commit()
    for old, new, made in [
        (DECLARED, PAIR, "(v, k) INCLUDE (w) NULLS NOT DISTINCT"),
        (PAIR, PRIMARY, "(k) INCLUDE (v)"),
        (PRIMARY, DECLARED, "(k) NULLS NOT DISTINCT"),
    ]:
        switch(database, old, new)
        assert indexes(connection) == [unique + made]
        apply_change(connection, new, change({(3, 3, 3): 1}))
        apply_change(connection, new, change({(3, 3, 3): -1}))
        connection.commit()
    apply_change(connection, DECLARED, change({(None, 1, 1): 1}))
    assert served(connection)[None, 1, 1] == 1


@postgres
def test_an_index_that_rows_do_not_keep_leaves_nothing(
    database: Database, connection: Connection
) -> None:
    create_served(connection, BAG)
    apply_change(connection, BAG, change({(1, 1, 1): 1, (1, 2, 2): 1, (None, 3, 3): 1}))
    connection.commit()
    before = indexes(connection)
    connection.commit()
    for wanted in (DECLARED, table(key="v, k", primary_key=True)):
        with pytest.raises(UserError) as raised:
            build_beside(database, wanted)
        assert raised.value.code == "key-violated"
        assert indexes(connection) == before
        assert (
            connection.execute(
                "SELECT FROM pg_constraint WHERE conrelid = 'served'::regclass AND contype = 'c'"
            ).fetchall()
            == []
        )
        connection.commit()


@postgres
def test_a_primary_key_waits_for_readers_and_gives_up_soon(
    database: Database, connection: Connection, dsn: str
) -> None:
    create_served(connection, BAG)
    connection.commit()
    with psycopg.connect(dsn) as reader:
        reader.execute("SELECT FROM served")
        build_beside(database, table(key="k, v"))
        tidy(database, [BAG])
        with pytest.raises(Transient):
            switch_now(database, BAG, PRIMARY)
        assert reader.execute("SELECT FROM served").fetchall() == []


def switch_now(database: Database, old: StreamTable, new: StreamTable) -> None:
    from headrace.source.faults import translated

    build_beside(database, new)
    with database.session() as session, translated(), session.transaction():
        take_over(session, old, new)


@postgres
def test_what_a_crash_left_is_dropped(database: Database, connection: Connection) -> None:
    create_served(connection, BAG)
    connection.commit()
    before = indexes(connection)
    connection.commit()
    build_beside(database, DECLARED)
    build_beside(database, PRIMARY)
    assert len(indexes(connection)) == 3
    connection.commit()
    tidy(database, [BAG])
    assert indexes(connection) == before
    assert (
        connection.execute(
            "SELECT FROM pg_constraint WHERE conrelid = 'served'::regclass AND contype = 'c'"
        ).fetchall()
        == []
    )


@postgres
def test_an_index_of_a_partitioned_table_is_built_in_the_transaction(
    database: Database, connection: Connection
) -> None:
    old = table(partition_by="k")
    create_served(connection, old)
    apply_change(connection, old, change({(1, 1, 1): 1, (2, 1, 1): 1}))
    connection.commit()
    switch(database, old, PARTED)
    apply_change(connection, PARTED, change({(1, 1, 1): -1, (1, 1, 2): 1}))
    with pytest.raises(UserError, match="is no key"):
        apply_change(connection, PARTED, change({(2, 1, 5): 1}))


@postgres
@pytest.mark.parametrize("new", [DECLARED, PRIMARY, PAIR, BAG], ids=["one", "pk", "pair", "bag"])
@pytest.mark.parametrize("old", [DECLARED, PRIMARY, PAIR, BAG], ids=["one", "pk", "pair", "bag"])
def test_a_rebuilt_table_has_the_requested_key(
    connection: Connection, old: StreamTable, new: StreamTable
) -> None:
    create_served(connection, old)
    apply_change(connection, old, change({(1, 1, 1): 1, (2, 2, 2): 1}))
    made = replace(new, relation="r2")
    replace_served(connection, old, made, change({(1, 1, 3): 1, (2, 2, 2): 1}))
    assert served(connection) == {(1, 1, 3): 1, (2, 2, 2): 1}
    apply_change(connection, made, change({(1, 1, 3): -1, (1, 1, 4): 1}))
    (name,) = connection.execute(
        "SELECT indexname FROM pg_indexes WHERE tablename = 'served'"
    ).fetchall()
    assert name == (index_name(made),)
    if new is not BAG:
        with pytest.raises(UserError) as raised:
            replace_served(
                connection, made, replace(new, relation="r3"), change({(1, 1, 1): 1, (1, 1, 2): 1})
            )
        assert raised.value.code == "key-violated"


PARTED_PRIMARY = table(key="k, v", partition_by="k", primary_key=True)
PARTED_INCLUDE = table(key="k, v", partition_by="k", include="w")
RANGE_PRIMARY = table(key="k, v", partition_by="range(k, 10)", primary_key=True)
PARTED_KEYS = [PARTED, PARTED_PRIMARY, RANGE_PRIMARY]
IDS = ["key", "primary key", "range"]


@postgres
@pytest.mark.parametrize("parted", PARTED_KEYS, ids=IDS)
def test_a_broken_key_of_a_partitioned_table(
    database: Database, connection: Connection, parted: StreamTable
) -> None:
    create_served(connection, parted)
    apply_change(connection, parted, change({(1, 1, 1): 1, (2, 2, 2): 1}))
    connection.commit()
    twice = change({(1, 1, 1): 1, (1, 1, 2): 1, (2, 2, 2): 1})
    for new in (parted, replace(parted, relation="r2")):
        with pytest.raises(UserError) as raised:
            replace_served(connection, parted, new, twice)
        connection.rollback()
        assert raised.value.code == "key-violated"
        assert "(k, v)=(1, 1)" in (raised.value.detail or "")
    assert served(connection) == {(1, 1, 1): 1, (2, 2, 2): 1}


@postgres
@pytest.mark.parametrize("parted", PARTED_KEYS, ids=IDS)
def test_a_key_that_rows_of_a_partitioned_table_do_not_keep(
    database: Database, connection: Connection, parted: StreamTable
) -> None:
    by = str(parted.options["partition_by"])
    old = table(partition_by=by)
    create_served(connection, old)
    apply_change(connection, old, change({(1, 1, 1): 1, (1, 1, 2): 1, (2, 2, 2): 1}))
    connection.commit()
    with pytest.raises(UserError) as raised:
        switch_now(database, old, parted)
    assert raised.value.code == "key-violated"
    with pytest.raises(UserError) as raised, connection.transaction():
        take_over(connection, old, parted)
    assert raised.value.code == "key-violated"
    left = "SELECT count(*) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid"
    left += " WHERE x.indisunique AND c.relname ~ '^headrace_(rows|part)'"
    assert connection.execute(left).fetchone() == (0,)


@postgres
@pytest.mark.parametrize("primary", [PRIMARY, PARTED_PRIMARY], ids=["plain", "parted"])
def test_a_primary_key_that_a_foreign_key_needs(
    database: Database, connection: Connection, primary: StreamTable
) -> None:
    create_served(connection, primary)
    key = "k" if primary is PRIMARY else "k, v"
    connection.execute(
        f"CREATE TABLE child (k int, v int, FOREIGN KEY ({key}) REFERENCES served ({key}))"
    )
    connection.commit()
    others = dict(primary.options)
    del others["primary_key"]
    for options in (others, {**primary.options, "include": "w"}):
        with pytest.raises(UserError) as raised:
            switch_now(database, primary, replace(primary, options=options))
        assert raised.value.code == "has-dependents"
        assert "child" in (raised.value.detail or "")
        tidy(database, [primary])
    assert len(indexes(connection)) == 1


LONG = (OutputColumn("k", INTEGER, "integer"), OutputColumn("t", Type("text"), "text"))


def long_change(length: int) -> VisibleChange:
    # Random, since an index compresses its values.
    text = "".join(map(chr, random.Random(1).choices(range(0x4E00, 0x9000), k=length)))
    columns = [pa.array([1], pa.int64()), pa.array([1], pa.int32()), pa.array([text])]
    return VisibleChange.of(pa.table(columns, names=["_weight", "c1", "c2"]))


@postgres
@pytest.mark.parametrize("length", [2000, 20000])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"key": "k", "include": "t"}, "include = 't'"),
        ({"key": "k, t"}, "key = 'k, t'"),
        ({"key": "k", "include": "t", "partition_by": "k"}, "include = 't'"),
    ],
)
def test_a_text_that_is_too_long_for_the_index(
    database: Database,
    connection: Connection,
    options: dict[str, Any],
    named: str,
    length: int,
) -> None:
    keyed = StreamTable("r1", "public", "served", "", LONG, (), options=options)
    by = {name: value for name, value in options.items() if name == "partition_by"}
    plain = replace(keyed, options=by)
    create_served(connection, keyed)
    connection.commit()
    with pytest.raises(UserError) as raised:
        apply_change(connection, keyed, long_change(length))
    connection.rollback()
    assert raised.value.code == "index-row-too-large"
    assert named in raised.value.message
    assert f"{named.split(maxsplit=1)[0]} = NULL" in (raised.value.hint or "")
    connection.execute("DROP TABLE served")
    create_served(connection, plain)
    apply_change(connection, plain, long_change(length))
    connection.commit()
    with pytest.raises(UserError) as raised:
        build_beside(database, keyed)
    assert raised.value.code == "index-row-too-large"


@postgres
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (table(partition_by="k"), PARTED),
        (table(partition_by="k"), PARTED_PRIMARY),
        (PARTED, PARTED_PRIMARY),
        (PARTED_PRIMARY, PARTED_INCLUDE),
        (
            PARTED_PRIMARY,
            replace(PARTED_PRIMARY, options={**PARTED_INCLUDE.options, "primary_key": True}),
        ),
        (PARTED, table(partition_by="k")),
    ],
)
def test_indexes_of_a_partitioned_table_are_built_beside(
    database: Database, connection: Connection, dsn: str, old: StreamTable, new: StreamTable
) -> None:
    """The transaction only puts those of the partitions together: none is built under its lock."""
    create_served(connection, old)
    apply_change(connection, old, change({(1, 1, 1): 1, (2, 2, 2): 1}))
    connection.commit()
    beside = (
        "SELECT x.indexrelid, pg_relation_filenode(x.indexrelid) FROM pg_index x"
        " JOIN pg_inherits i ON i.inhrelid = x.indrelid AND i.inhparent = 'served'::regclass"
        " WHERE x.indisvalid ORDER BY 1"
    )
    before = set(connection.execute(beside).fetchall())
    connection.commit()
    with psycopg.connect(dsn) as reader:
        if not new.options.get("primary_key"):
            reader.execute("SELECT FROM served")
        build_beside(database, new)
        reader.execute("SELECT FROM served")
        built = set(connection.execute(beside).fetchall()) - before
        connection.commit()
        assert len(built) == 2
        with pytest.raises(psycopg.errors.LockNotAvailable), connection.transaction():
            take_over(connection, old, new)
    # A partition that comes meanwhile has its index built with the switch.
    apply_change(connection, old, change({(3, 3, 3): 1}))
    connection.commit()
    with connection.transaction():
        take_over(connection, old, new)
    left = set(connection.execute(beside).fetchall())
    assert built < left and len(left) == 3
    connection.commit()
    tidy(database, [new])
    assert set(connection.execute(beside).fetchall()) == left
    checks = "SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND conname ~ '^headrace'"
    assert connection.execute(checks).fetchone() == (0,)
    apply_change(connection, new, change({(3, 3, 3): -1, (3, 3, 4): 1, (4, 4, 4): 1}))
    assert served(connection) == {(1, 1, 1): 1, (2, 2, 2): 1, (3, 3, 4): 1, (4, 4, 4): 1}
    if served_key(new) is not None:
        connection.commit()
        with pytest.raises(UserError, match="is no key"):
            apply_change(connection, new, change({(1, 1, 2): 1}))
