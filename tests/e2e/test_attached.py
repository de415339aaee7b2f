"""Stream tables over several databases: exact, and one that is away stops only what reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

import headrace
from headrace.daemon import loop as service
from headrace.embedded import EmbeddedServer
from headrace.errors import HeadraceError, UserError
from tests.daemon.running import Running, eventually
from tests.databases import extra_database
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

SPENT = """
SELECT c.name, count(o.id) AS orders, sum(o.amount) AS spent
FROM crm.public.customer c LEFT JOIN orders o ON o.customer = c.id
GROUP BY c.name
"""
BY_CUSTOMER = "SELECT customer, count(*) AS n FROM orders GROUP BY customer"
NAMES = "SELECT name, count(*) AS n FROM crm.public.customer GROUP BY name"


@pytest.fixture
def crm_dsn(server: EmbeddedServer) -> Iterator[str]:
    with extra_database(server) as dsn:
        yield dsn


@pytest.fixture
def crm(crm_dsn: str) -> Iterator[psycopg.Connection]:
    """The registry's own connection."""
    with psycopg.connect(crm_dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE customer (id int PRIMARY KEY, name text)")
        connection.execute(
            "INSERT INTO customer SELECT i, 'n' || i % 3 FROM generate_series(1, 6) i"
        )
        yield connection


@pytest.fixture
def both(
    project: headrace.Headrace, sql: psycopg.Connection, crm: psycopg.Connection, crm_dsn: str
) -> headrace.Headrace:
    """The project, with orders at home and customers in an attached database."""
    sql.execute("CREATE TABLE orders (id serial, customer int, amount int)")
    sql.execute(
        "INSERT INTO orders (customer, amount) SELECT i % 8, i FROM generate_series(1, 30) i"
    )
    project.attach("crm", crm_dsn)
    return project


def spent(sql: psycopg.Connection, crm: psycopg.Connection) -> Counter[tuple[Any, ...]]:
    """What SPENT is, in plain Python."""
    orders = sql.execute("SELECT id, customer, amount FROM orders").fetchall()
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for number, name in crm.execute("SELECT id, name FROM customer").fetchall():
        matching = [order for order in orders if order[1] == number]
        groups.setdefault(name, []).extend(matching or [(None, None, None)])
    return Counter(
        (
            name,
            sum(identity is not None for identity, _, _ in rows),
            sum(amount or 0 for *_, amount in rows)
            if any(amount is not None for *_, amount in rows)
            else None,
        )
        for name, rows in groups.items()
    )


def served(sql: psycopg.Connection, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(sql.execute(f"TABLE {name}").fetchall())


def shut(sql: psycopg.Connection, crm_dsn: str, *, out: bool) -> None:
    """Let nobody into the attached database, or everybody again."""
    name = psycopg.conninfo.conninfo_to_dict(crm_dsn)["dbname"]
    sql.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {not out}")
    if out:
        sql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )


def test_rows_of_two_databases_are_joined_exactly(
    both: headrace.Headrace, sql: psycopg.Connection, crm: psycopg.Connection
) -> None:
    both.create_stream_table("spent", SPENT, refresh_mode="DIFFERENTIAL")
    assert served(sql, "spent") == spent(sql, crm)
    random = Random(7)
    for _ in range(4):
        if random.random() < 0.7:
            sql.execute("DELETE FROM orders WHERE id %% 5 = %s", [random.randrange(5)])
            sql.execute("INSERT INTO orders (customer, amount) VALUES (%s, 5), (NULL, 1)", [3])
        crm.execute("UPDATE customer SET name = 'n' || %s WHERE id < 4", [random.randrange(4)])
        crm.execute("INSERT INTO customer VALUES (%s, NULL)", [random.randrange(100, 10_000)])
        done = both.refresh("spent")
        assert done.mode == "DIFFERENTIAL", done.reason
        assert served(sql, "spent") == spent(sql, crm)
    assert both.refresh("spent").mode == "SKIPPED"
    receipt = both.verify("spent", source=True)
    assert receipt.equal
    assert {what for what in receipt.detail if what.startswith("source")} == {
        "source public.orders",
        "source crm.public.customer",
    }
    home, attached = both.databases()
    assert (home.sources, attached.sources) == (1, 1)
    assert attached.epoch != home.epoch


def test_a_database_that_is_away_stops_only_what_reads_it(
    both: headrace.Headrace,
    sql: psycopg.Connection,
    crm: psycopg.Connection,
    crm_dsn: str,
) -> None:
    both.create_stream_table("by_customer", BY_CUSTOMER)
    both.create_stream_table("spent", SPENT)
    sql.execute("INSERT INTO orders (customer, amount) VALUES (1, 100)")
    shut(sql, crm_dsn, out=True)
    assert both.refresh("by_customer").mode == "DIFFERENTIAL"
    assert_served(both, sql, "by_customer")
    with pytest.raises(HeadraceError) as caught:
        both.refresh("spent")
    assert caught.value.code in ("connection-lost", "server-unreachable")
    shut(sql, crm_dsn, out=False)
    with psycopg.connect(crm_dsn, autocommit=True) as again:
        again.execute("DELETE FROM customer WHERE id = 1")
        both.refresh("spent")
        assert served(sql, "spent") == spent(sql, again)


def test_a_daemon_goes_on_without_one_of_its_databases(
    both: headrace.Headrace,
    sql: psycopg.Connection,
    crm: psycopg.Connection,
    dsn: str,
    crm_dsn: str,
    tmp_path: Path,
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "THOROUGH", 0.3)
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as client, Running(both):
        client.create_stream_table("by_customer", BY_CUSTOMER, schedule="100ms")
        client.create_stream_table("names", NAMES, schedule="100ms")
        client.create_stream_table("spent", SPENT, schedule="100ms")
        crm.execute("INSERT INTO customer VALUES (50, 'fifty')")
        sql.execute("INSERT INTO orders (customer, amount) VALUES (50, 100)")
        client.wait_fresh("spent")
        assert served(sql, "spent") == spent(sql, crm)
        shut(sql, crm_dsn, out=True)
        sql.execute("INSERT INTO orders (customer, amount) VALUES (50, 200)")
        client.wait_fresh("by_customer")
        assert_served(client, sql, "by_customer")
        shut(sql, crm_dsn, out=False)
        with psycopg.connect(crm_dsn, autocommit=True) as again:
            again.execute("UPDATE customer SET name = 'half a hundred' WHERE id = 50")
            eventually(lambda: served(sql, "spent") == spent(sql, again))
            again.execute("DELETE FROM customer WHERE id = 2")
            client.wait_fresh("names")
            client.wait_fresh("spent")
            assert served(sql, "spent") == spent(sql, again)


def test_capture_goes_with_the_last_reader(
    both: headrace.Headrace, crm: psycopg.Connection, sql: psycopg.Connection
) -> None:
    def captured(connection: psycopg.Connection) -> bool:
        query = "SELECT to_regnamespace('headrace_capture') IS NOT NULL"
        row = connection.execute(query).fetchone()
        assert row is not None
        return bool(row[0])

    both.create_stream_table("spent", SPENT)
    assert captured(crm)
    with pytest.raises(UserError) as caught:
        both.detach("crm")
    assert caught.value.code == "has-dependents"
    both.drop_stream_table("spent")
    assert not captured(crm)
    assert not captured(sql)
    both.detach("crm")
    both.attach("again", both_address(both, crm))
    both.create_stream_table("spent", SPENT.replace("crm.", "again."))
    both.uninstall()
    assert not captured(crm)
    assert not captured(sql)


def both_address(project: headrace.Headrace, crm: psycopg.Connection) -> str:
    """The address of the attached database."""
    return psycopg.conninfo.make_conninfo(project.dsn, dbname=crm.info.dbname)
