"""Single files of the store that are deleted or truncated: the named command restores exactness."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

TABLES = {
    "totals": "SELECT customer, count(*) AS n, max(amount) AS m FROM orders GROUP BY customer",
    "tops": "SELECT n, count(*) AS c FROM totals GROUP BY n",
    "ids": "SELECT id FROM others",
}


def halve(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


DAMAGES: dict[str, Callable[[Path], object]] = {"deleted": Path.unlink, "halved": halve}
FILES = {"data": "rows-*.parquet", "log": "_delta_log/*[1-9].json"}


def damaged(hr: headrace.Headrace, owner: str, file: str, damage: str) -> None:
    """Damage a file of the log of a source, of a table, or of a stage of it."""
    state = hr._engine.catalog.state()
    table = state.stream_table("public", "totals")
    assert table is not None
    stages = [one.id for one in state.relations if one.id.startswith(table.relation)]
    folders = {
        "source": [table.inputs[0]],
        "table": [table.relation],
        "stage": [one for one in stages if one != table.relation] or [table.relation],
    }
    found = sorted((hr.home / "store" / folders[owner][0]).glob(FILES[file]))
    assert found
    DAMAGES[damage](found[-1])


@pytest.mark.parametrize("command", ["reinit", "repair"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("owner", ["source", "table", "stage"])
def test_a_lost_file(
    dsn: str,
    tmp_path: Path,
    spark: SparkSession,
    sql: psycopg.Connection,
    owner: str,
    file: str,
    damage: str,
    command: str,
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("CREATE TABLE others (id int PRIMARY KEY)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        hr.create_stream_tables(TABLES)
        sql.execute("INSERT INTO orders VALUES (20, 1, 1); INSERT INTO others VALUES (1)")
        for name in TABLES:
            hr.refresh(name)
        damaged(hr, owner, file, damage)
        before = {s.name: s.relation for s in hr._engine.catalog.state().sources}
    sql.execute("INSERT INTO orders VALUES (21, 1, 30)")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        if command == "reinit":
            hr.reinit("totals")
        else:
            (found,) = hr.repair()
            assert found.mended
            assert found.kind == ("source" if owner == "source" else "stream table")
            assert hr.repair() == ()
        after = {s.name: s.relation for s in hr._engine.catalog.state().sources}
        again = {name for name in before if before[name] != after[name]}
        assert again == ({"orders"} if owner == "source" else set()), "no other is copied"
        sql.execute("DELETE FROM orders WHERE id = 3; INSERT INTO others VALUES (2)")
        for name in TABLES:
            hr.refresh(name)
            assert_served(hr, sql, name)
            assert hr.verify(name, source=True).equal


@pytest.mark.parametrize("held", ["", "odd"])
def test_a_cycle_goes_on_once_its_source_is_repaired(
    dsn: str, tmp_path: Path, spark: SparkSession, sql: psycopg.Connection, held: str
) -> None:
    """A refresh between the loss and the repair suspends all that read the source.

    One of the cycle that was suspended by hand keeps all of it back until it is resumed.
    """
    sql.execute("CREATE TABLE edges (a int, b int, PRIMARY KEY (a, b))")
    sql.execute("INSERT INTO edges SELECT i, i + 1 FROM generate_series(1, 6) i")
    odd = "SELECT a, b FROM edges UNION SELECT w.a, e.b FROM even w JOIN edges e ON e.a = w.b"
    tables = {
        "odd": odd,
        "even": "SELECT w.a, e.b FROM odd w JOIN edges e ON e.a = w.b",
        "ends": "SELECT count(*) AS n FROM odd",
    }
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        hr.set("allow_circular", True)
        hr.create_stream_tables(tables)
        sql.execute("DELETE FROM edges WHERE a = 3")
        hr.refresh("even")
        (source,) = hr._engine.catalog.state().sources
        logs = sorted((hr.home / "store" / source.relation).glob(FILES["log"]))
        logs[-1].unlink()
    sql.execute("INSERT INTO edges VALUES (3, 5)")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        with pytest.raises(headrace.HeadraceError, match="suspended"):
            hr.refresh("even")
        if held:
            hr.suspend(held)
        (found,) = hr.repair()
        assert found.mended
        if held:
            standing = {table.name for table in hr.status() if table.status == "SUSPENDED"}
            assert standing == {"public.odd", "public.even"}
            hr.resume(held)
        assert {table.status for table in hr.status()} == {"ACTIVE"}
        sql.execute("DELETE FROM edges WHERE a = 2")
        hr.refresh("ends")
        for name in tables:
            hr.refresh(name)
            assert hr.verify(name, source=True).equal
