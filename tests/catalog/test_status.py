"""The view `headrace.status`: how fresh every stream table is, for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from headrace.catalog import Catalog, Change, PostgresCatalog
from headrace.catalog.records import CaptureMode, Following, StreamTable
from tests.catalog import examples

pytestmark = pytest.mark.postgres

ROLE = sql.Identifier("headrace_test_reader")


def put(catalog: Catalog, table: StreamTable, *epochs: int) -> None:
    refreshes = tuple(replace(examples.REFRESH, epoch=epoch) for epoch in epochs)
    with catalog.lease("test") as lease:
        catalog.commit(
            Change(put=(*examples.RECORDS[:-1], table), refreshes=refreshes), fence=lease.fence
        )


def status(dsn: str) -> DictRow:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        (row,) = connection.execute("SELECT * FROM headrace.status").fetchall()
        return row


@pytest.fixture
def reader(dsn: str) -> Iterator[psycopg.Connection]:
    """A session of a role that was granted nothing."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {}").format(ROLE))
        connection.execute(sql.SQL("SET ROLE {}").format(ROLE))
        yield connection
        connection.execute("RESET ROLE")
        connection.execute(sql.SQL("DROP ROLE {}").format(ROLE))


def test_one_row_a_stream_table(postgres: PostgresCatalog, dsn: str) -> None:
    as_of = datetime.now(UTC) - timedelta(hours=1)
    put(postgres, replace(examples.TABLE, as_of=as_of), 8, 9)
    row = status(dsn)
    lag = row.pop("lag")
    assert timedelta(hours=1) <= lag < timedelta(hours=1, minutes=1)
    assert row == {
        "name": 'shop."Totals"',
        "status": "SUSPENDED",
        "reason": "column amount was dropped",
        "epoch": 9,
        "as_of": as_of,
        "refresh_mode": "DIFFERENTIAL",
        "schedule": "30s",
        "last_refresh_mode": "DIFFERENTIAL",
        "last_refresh_duration": timedelta(seconds=1.5),
        "last_refresh_at": examples.REFRESH.finished_at,
        "stratum": 1,
        "last_iterations": 7,
        "last_group": [],
        "capture": [{"source": 'shop.or"ders.ü', "mode": "TRIGGER", "slot": None}],
    }


def test_strata_groups_and_captures(postgres: PostgresCatalog, dsn: str) -> None:
    """Of a cycle over an aggregate, in a database whose WAL is read through a slot."""
    log = Following("headrace_1", "1", 7, 1, "1", "7", 1)
    database = replace(examples.DATABASE, alias="crm", address="host=x", following=log)
    source = replace(examples.SOURCE, mode=CaptureMode.WAL)
    a = replace(examples.TABLE, inputs=("rorders", "rb"), edges={"rorders": ("aggregate",)})
    b = replace(examples.TABLE, name="b", relation="rb", inputs=("rtotals",), edges={"rtotals": ()})
    c = replace(examples.TABLE, name="c", relation="rc", inputs=("rb",), edges={"rb": ("window",)})
    relations = (replace(examples.TOTALS, id="rb"), replace(examples.TOTALS, id="rc"))
    records = (database, examples.ORDERS, examples.TOTALS, *relations, source, a, b, c)
    line = replace(examples.REFRESH, group=("rtotals", "rb"))
    with postgres.lease("test") as lease:
        postgres.commit(Change(put=records, refreshes=(line,)), fence=lease.fence)
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT name, stratum, last_group, capture FROM headrace.status ORDER BY name"
        ).fetchall()
    capture = [{"source": 'crm.shop.or"ders.ü', "mode": "WAL", "slot": "headrace_1"}]
    assert rows == [
        ('shop."Totals"', 1, ['shop."Totals"', "shop.b"], capture),
        ("shop.b", 1, [], capture),
        ("shop.c", 2, [], capture),
    ]


def test_a_table_never_published_has_no_lag(postgres: PostgresCatalog, dsn: str) -> None:
    put(postgres, replace(examples.TABLE, as_of=None, epoch=0))
    row = status(dsn)
    assert (row["lag"], row["last_refresh_mode"], row["last_refresh_at"]) == (None, None, None)


def test_lag_is_never_negative(postgres: PostgresCatalog, dsn: str) -> None:
    put(postgres, replace(examples.TABLE, as_of=datetime.now(UTC) + timedelta(hours=1)))
    assert status(dsn)["lag"] == timedelta(0)


def test_everybody_may_read_the_status_and_nothing_else(
    postgres: PostgresCatalog, reader: psycopg.Connection
) -> None:
    put(postgres, examples.TABLE)
    assert reader.execute("SELECT name FROM headrace.status").fetchall() == [('shop."Totals"',)]
    for table in ("stream_tables", "settings", "lease", "requests", "sources"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(sql.SQL("TABLE {}").format(sql.Identifier("headrace", table)))
