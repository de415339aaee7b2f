"""Applying a change to a served table: only one that takes rows away looks for any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from headrace.catalog import PostgresCatalog
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.errors import InternalError
from headrace.publish import apply
from headrace.publish.apply import apply_change
from headrace.publish.replace import replace_served
from headrace.publish.served import create_served
from headrace.relations.visible_change import VisibleChange
from headrace.source.connection import Database
from headrace.types import INTEGER, Type

pytestmark = pytest.mark.postgres

COLUMNS = tuple(OutputColumn(name, INTEGER, "integer") for name in ("k", "v"))
BAG = StreamTable("r1", "public", "served", "", COLUMNS, ())
KEYED = StreamTable("r1", "public", "served", "", COLUMNS, (), key=("k",))
Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    """A session in a database with a catalog."""
    PostgresCatalog.open(Database(dsn).connect).close()
    with psycopg.connect(dsn) as opened:
        yield opened


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways in which rows that go were looked for."""
    ways: list[str] = []

    def note(name: str) -> None:
        real = getattr(apply, name)

        def noted(*arguments: Any) -> Any:
            ways.append(name)
            return real(*arguments)

        monkeypatch.setattr(apply, name, noted)

    note("_apply_by_key")
    note("_delete_from_bag")
    return ways


def change(rows: dict[tuple[int | None, int], int]) -> VisibleChange:
    weights, keys, values = list(rows.values()), [k for k, _ in rows], [v for _, v in rows]
    types = [("_weight", pa.int64()), ("c1", pa.int32()), ("c2", pa.int32())]
    arrays = [
        pa.array(values_, type_)
        for values_, (_, type_) in zip((weights, keys, values), types, strict=True)
    ]
    return VisibleChange.of(pa.table(arrays, names=[name for name, _ in types]))


def served(connection: Connection) -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute("SELECT k, v FROM served").fetchall())


@pytest.mark.parametrize("table", [BAG, KEYED], ids=["bag", "keyed"])
def test_rows_that_only_come_are_inserted(
    connection: Connection, looked: list[str], table: StreamTable
) -> None:
    create_served(connection, table)
    copies = 1 if table.key else 3
    apply_change(connection, table, change({(1, 1): copies, (None, 2): 1}))
    apply_change(connection, table, change({(2, 2): 1}))
    assert served(connection) == {(1, 1): copies, (None, 2): 1, (2, 2): 1}
    assert looked == []
    apply_change(connection, table, change({(1, 1): -1, (1, 5): 1, (None, 2): -1}))
    left = {(1, 1): 2} if copies == 3 else {}
    assert served(connection) == {**left, (1, 5): 1, (2, 2): 1}
    assert looked == ["_apply_by_key" if table.key else "_delete_from_bag"]


READ = """
SELECT seq_tup_read, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del
FROM pg_stat_xact_user_tables WHERE relname = 'served'
"""


@pytest.mark.parametrize(
    ("table", "written"), [(BAG, (2, 0, 2)), (KEYED, (1, 1, 1))], ids=["bag", "keyed"]
)
def test_a_small_change_reads_its_own_rows_alone(
    connection: Connection, table: StreamTable, written: tuple[int, int, int]
) -> None:
    """By the index, in a table of which PostgreSQL has no statistics; and an update is one."""
    create_served(connection, table)
    apply_change(connection, table, change({(n, n): 1 for n in range(5000)}))
    before = connection.execute(READ).fetchall()
    apply_change(connection, table, change({(7, 7): -1, (7, 8): 1, (9, 9): -1, (5001, 1): 1}))
    after = connection.execute(READ).fetchall()
    scanned, fetched, *changed = (b - a for a, b in zip(*before, *after, strict=True))
    assert scanned == 0
    assert 0 < fetched <= 4
    assert tuple(changed) == written


def test_a_key_that_is_there_already(connection: Connection, looked: list[str]) -> None:
    """Somebody else has written the table: nothing is published."""
    create_served(connection, KEYED)
    apply_change(connection, KEYED, change({(1, 1): 1}))
    connection.commit()
    with pytest.raises(InternalError, match="is not as it was published") as caught:
        apply_change(connection, KEYED, change({(1, 2): 1, (3, 3): 1}))
    connection.rollback()
    assert caught.value.detail == "A row was to be inserted whose key was there."
    assert served(connection) == {(1, 1): 1} and looked == []


def test_a_unique_index_of_the_user_s_own(connection: Connection) -> None:
    create_served(connection, KEYED)
    connection.execute("CREATE UNIQUE INDEX mine ON served (v)")
    apply_change(connection, KEYED, change({(1, 1): 1}))
    with pytest.raises(psycopg.errors.UniqueViolation, match="mine"):
        apply_change(connection, KEYED, change({(2, 1): 1}))


DECLARED = replace(BAG, options={"key": "k"})
PARTED = replace(KEYED, options={"partition_by": "k"})
RANGES = replace(BAG, options={"partition_by": "range(k, 10)"})


@pytest.mark.parametrize(
    "table", [BAG, KEYED, DECLARED, PARTED, RANGES], ids=["bag", "key", "declared", "list", "range"]
)
@pytest.mark.parametrize("deleting", [False, True])
def test_rows_that_a_trigger_keeps_out_fail_the_publish(
    connection: Connection, table: StreamTable, deleting: bool
) -> None:
    create_served(connection, table)
    apply_change(connection, table, change({(1, 1): 1, (4, 4): 1}))
    connection.execute(
        "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.v = 7 THEN RETURN NULL; END IF; RETURN NEW; END';"
        " CREATE TRIGGER skip BEFORE INSERT ON served FOR EACH ROW EXECUTE FUNCTION skip()"
    )
    connection.commit()
    rows: dict[tuple[int | None, int], int] = {(2, 7): 1, (3, 3): 1}
    if deleting:
        rows |= {(1, 1): -1, (1, 2): 1, (4, 4): -1}
    with pytest.raises(InternalError) as raised:
        apply_change(connection, table, change(rows))
    connection.rollback()
    assert raised.value.code == "invariant"
    assert (raised.value.detail or "").startswith(
        f"{2 + deleting} rows were to be inserted, {1 + deleting} were"
    )
    assert served(connection) == {(1, 1): 1, (4, 4): 1}
    with pytest.raises(InternalError, match="is not as it was published"):
        replace_served(connection, table, table, change({(1, 1): 1, (2, 7): 1}))
    connection.rollback()
    del rows[2, 7]
    apply_change(connection, table, change(rows))
    assert served(connection)[3, 3] == 1


def test_a_bpchar_is_served_with_its_blanks(connection: Connection) -> None:
    """Of one length, all its values are padded to that; else each has its own blanks."""
    types = (Type("character", length=3, unsized=True), Type("character", unsized=True))
    columns = tuple(map(OutputColumn, ("k", "v"), types, ("bpchar", "bpchar")))
    table = StreamTable("r1", "public", "served", "", columns, ())
    create_served(connection, table)

    def changed(rows: dict[tuple[str | None, str | None], int]) -> VisibleChange:
        names, values = ("_weight", "c1", "c2"), (list(rows.values()), *zip(*rows, strict=True))
        types = (pa.int64(), pa.string(), pa.string())
        return VisibleChange.of(pa.table(list(map(pa.array, values, types)), names=names))

    apply_change(connection, table, changed({("x", "x "): 1, (None, None): 1, ("abc", ""): 2}))
    assert served(connection) == {("x  ", "x "): 1, (None, None): 1, ("abc", ""): 2}
    apply_change(connection, table, changed({("x", "x "): -1, ("abc", ""): -1, ("x", "x"): 1}))
    assert served(connection) == {("x  ", "x"): 1, (None, None): 1, ("abc", ""): 1}
