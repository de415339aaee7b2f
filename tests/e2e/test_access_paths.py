"""Every way to the rows that a change joins with gives the same, and is really taken."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

import headrace
from headrace.catalog.records import Refresh
from headrace.relations.access_paths import AccessPath, AccessPaths
from headrace.relations.input_reader import InputReader
from headrace.render import PlanInput
from headrace.store import Keys, layout, parquet, reader
from headrace.store.cache import Recent
from headrace.store.keys import Mask
from headrace.store.lookup import Footer, may_match
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

VIEWS = {
    "totals": "SELECT c.region, count(*) AS n, sum(l.price) AS total"
    " FROM customers c JOIN orders o ON o.customer = c.id JOIN lines l ON l.order_id = o.id"
    " GROUP BY c.region",
    "dearest": "SELECT o.id, max(l.price) AS most FROM orders o LEFT JOIN lines l"
    " ON l.order_id = o.id GROUP BY o.id",
    "idle": "SELECT c.id, c.region FROM customers c"
    " WHERE NOT EXISTS (SELECT FROM orders o WHERE o.customer = c.id)",
    "both": "SELECT l.order_id, s.stock FROM lines l"
    " JOIN stocks s ON s.part = l.part AND s.shop = l.shop",
}
CHANGES = (
    "INSERT INTO orders VALUES (900, 3), (901, NULL);"
    " INSERT INTO lines VALUES (900, 1, 1, 500), (901, 2, 2, 7), (5, 1, 2, NULL)",
    "UPDATE orders SET customer = customer + 1 WHERE id % 7 = 0;"
    " DELETE FROM lines WHERE order_id % 5 = 0; UPDATE customers SET region = NULL WHERE id = 4",
    "DELETE FROM orders WHERE id % 11 = 0; UPDATE stocks SET stock = 0 WHERE part = 2;"
    " UPDATE lines SET price = price + 1 WHERE order_id = 900",
    "INSERT INTO customers VALUES (500, 'new'); UPDATE orders SET customer = 500 WHERE id = 900;"
    " DELETE FROM customers WHERE id = 5; UPDATE lines SET part = 3, price = 9 WHERE order_id = 8",
)


@pytest.fixture
def shop(sql: psycopg.Connection) -> psycopg.Connection:
    sql.execute(
        "CREATE TABLE customers (id integer PRIMARY KEY, region text);"
        " CREATE TABLE orders (id bigint PRIMARY KEY, customer integer);"
        " CREATE TABLE lines (order_id bigint, part integer, shop integer, price numeric(10,2));"
        " CREATE TABLE stocks (part integer, shop integer, stock integer, PRIMARY KEY (part, shop)"
        ");"
        " CREATE INDEX ON orders (customer); CREATE INDEX ON lines (order_id);"
        " CREATE INDEX ON lines (part, shop);"
        " INSERT INTO customers SELECT i, 'r' || i % 4 FROM generate_series(1, 40) i;"
        " INSERT INTO orders SELECT i, 1 + i % 30 FROM generate_series(1, 100) i;"
        " INSERT INTO lines SELECT 1 + i % 100, i % 6, i % 3, i FROM generate_series(1, 300) i;"
        " INSERT INTO stocks SELECT p, s, p * s FROM generate_series(0, 5) p,"
        " generate_series(0, 2) s"
    )
    return sql


def ways(refresh: Refresh) -> set[str]:
    return {access.way for stage in refresh.stages for access in stage.accesses}


@pytest.fixture
def left_out(project: headrace.Headrace, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many row groups each pruned look-up left out of a file; all rows are in small ones."""
    numbers: list[int] = []

    def watched(footer: Footer, keys: Keys) -> Mask:
        found = may_match(footer, keys)
        numbers.append(int((~found).sum()))
        return found

    monkeypatch.setattr(reader, "may_match", watched)
    monkeypatch.setattr(layout, "GROUP_ROWS", 8)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 8)
    monkeypatch.setattr(project._engine.store._reader, "_recent", Recent(0))
    return numbers


@pytest.mark.parametrize("way", ["probe", "index", "pruned", "scan", "whole"])
def test_all_ways_lead_to_the_same_rows(
    project: headrace.Headrace, shop: psycopg.Connection, left_out: list[int], way: str
) -> None:
    project.set("access_path", way)
    for name, query in VIEWS.items():
        project.create_stream_table(name, query)
    reads = project.explain("totals").stages[0].reads
    assert {"change of public.lines", "after of public.lines by order_id"} <= set(reads)
    taken: set[str] = set()
    for change in CHANGES:
        with shop.transaction():
            shop.execute(change)
        for name in VIEWS:
            done = project.refresh(name)
            assert done.mode == "DIFFERENTIAL"
            taken |= ways(done)
            assert_served(project, shop, name)
    # Groups are in no table of the user's, so the files are looked through for them.
    if way == "probe":
        assert {"probe"} < taken <= {"probe", "pruned", "scan"}
    else:
        assert taken == ({way} if way != "whole" else set())
    explained = [project.explain(name) for name in VIEWS]
    shown = {line.rpartition(" ")[2] for one in explained for line in one.found}
    assert shown <= {f"({one})" for one in taken}
    assert all(("rows last found by keys" in str(one)) == bool(one.found) for one in explained)
    assert any(one.found for one in explained) == (way != "whole")
    # Where the groups have keys without a whole number, an index is of no use.
    assert any(left_out) == (way in ("probe", "index", "pruned"))
    for name in VIEWS:
        assert project.verify(name).equal


def test_rows_that_change_after_the_cut_are_not_seen(
    project: headrace.Headrace, shop: psycopg.Connection
) -> None:
    """A stage probes the sources while the application goes on."""
    project.set("access_path", "probe")
    project.create_stream_table("totals", VIEWS["totals"])
    engine, at = project._engine, []

    def meanwhile(when: str, step: object) -> None:
        if when == "before" and type(step).__name__ == "ComputeStage":
            at.append(shop.execute(VIEWS["totals"]).fetchall())
            shop.execute(
                "UPDATE orders SET customer = 1; DELETE FROM lines WHERE price > 100;"
                " UPDATE customers SET region = 'late'"
            )

    shop.execute(CHANGES[0])
    engine.watch = meanwhile
    done = project.refresh("totals")
    assert "probe" in ways(done)
    served = shop.execute("SELECT * FROM totals").fetchall()
    assert len(at) == 1
    assert sorted(served, key=str) == sorted(at[0], key=str)
    project.refresh("totals")
    assert_served(project, shop, "totals")


def test_what_is_small_is_read_whole(project: headrace.Headrace, shop: psycopg.Connection) -> None:
    project.create_stream_table("totals", VIEWS["totals"])
    shop.execute(CHANGES[0])
    done = project.refresh("totals")
    assert ways(done) == set()
    read = done.stages[-1].rows_read
    project.set("access_path", "scan")
    shop.execute(CHANGES[1])
    assert project.refresh("totals").stages[-1].rows_read < read


@pytest.mark.parametrize("limit", ["rows", "bytes"])
def test_more_than_fits_is_read_by_spark(
    project: headrace.Headrace,
    shop: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    project.set("access_path", "scan")
    project.create_stream_table("totals", VIEWS["totals"])
    if limit == "rows":
        monkeypatch.setattr(InputReader, "most_found", lambda *_: 5)
    else:
        monkeypatch.setattr("headrace.relations.reduce.MOST_BYTES", 400)
    for change in CHANGES:
        shop.execute(change)
        done = project.refresh("totals")
        found = [access.kept for stage in done.stages for access in stage.accesses]
        # A row has a weight of eight bytes, and other columns.
        assert max(found, default=0) <= 5 if limit == "rows" else sum(found) < 400 / 8
        assert_served(project, shop, "totals")


@pytest.mark.parametrize("name", ["MOST_BYTES", "limit"])
def test_a_change_of_too_many_bytes_or_rows_stays_in_files(
    project: headrace.Headrace,
    shop: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    project.create_stream_table("totals", VIEWS["totals"])
    if name == "limit":
        project.set("collect_rows", 2)
    else:
        monkeypatch.setattr("headrace.relations.input_reader.MOST_BYTES", 1)
    for change in CHANGES:
        shop.execute(change)
        assert project.refresh("totals").mode == "DIFFERENTIAL"
        assert_served(project, shop, "totals")


def test_columns_that_nobody_reads_take_no_part(
    project: headrace.Headrace, shop: psycopg.Connection
) -> None:
    shop.execute("ALTER TABLE customers ADD COLUMN note text")
    project.create_stream_table(
        "regions", "SELECT o.id, c.region FROM orders o, customers c WHERE c.id = o.customer"
    )
    project.create_stream_table("notes", "SELECT id, note FROM customers")
    shop.execute("UPDATE customers SET note = 'x'; UPDATE orders SET customer = 7 WHERE id = 1")
    done = project.refresh("regions")
    # The order as it was and as it is, and the log of customers. No order is joined with the change
    # of customers, which has no rows in the columns that are read.
    assert done.stages[-1].rows_read == 2 + 3 * 40
    assert_served(project, shop, "regions")


def test_equal_keys_are_looked_up_once(
    project: headrace.Headrace, shop: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are read three times over, by the same keys wherever orders lead to them."""
    project.set("access_path", "index")
    project.create_stream_table(
        "alone",
        "SELECT a.order_id, a.part FROM lines a JOIN orders o ON o.id = a.order_id"
        " WHERE EXISTS (SELECT FROM lines b WHERE b.order_id = a.order_id AND b.part <> a.part)"
        " AND NOT EXISTS (SELECT FROM lines c WHERE c.order_id = a.order_id AND c.shop > a.shop)",
    )
    asked: list[tuple[str, frozenset[tuple[object, ...]]]] = []
    really = AccessPaths.find

    def find(self: AccessPaths, wanted: PlanInput, keys: Keys) -> tuple[pa.Table, AccessPath]:
        rows = zip(*keys._rows.to_pydict().values(), strict=True)
        asked.append((f"{wanted.name} by {keys.names}", frozenset(rows)))
        return really(self, wanted, keys)

    monkeypatch.setattr(AccessPaths, "find", find)
    for change in CHANGES:
        shop.execute(change)
        asked.clear()
        project.refresh("alone")
        assert len(asked) == len(set(asked)) > 0
        assert_served(project, shop, "alone")
