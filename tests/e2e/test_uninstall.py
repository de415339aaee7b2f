"""Uninstalling: everything of Headrace goes, nothing of the users does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import headrace
from headrace.embedded import EmbeddedServer
from headrace.engine.steps import Step
from tests.databases import extra_database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

OBJECTS = """
SELECT c.relkind::text, n.nspname::text, c.relname::text FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname !~ '^(pg_|information_schema)'
UNION ALL SELECT 'f', n.nspname, p.proname FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname !~ '^(pg_|information_schema)'
UNION ALL SELECT 't', '', tgname FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'n', '', nspname FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL SELECT 'd', '', description FROM pg_description WHERE objoid >= 16384
ORDER BY 1, 2, 3
"""


def _install(hr: headrace.Headrace, sql: psycopg.Connection) -> list[tuple[str, ...]]:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int)")
    sql.execute("CREATE TABLE parts (id int, part int) PARTITION BY LIST (part)")
    sql.execute("CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)")
    sql.execute(
        "CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
    )
    sql.execute("CREATE TRIGGER mine BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION mine()")
    sql.execute("INSERT INTO orders SELECT i, i % 3 FROM generate_series(1, 9) i")
    before = [o for o in sql.execute(OBJECTS).fetchall() if "headrace" not in (*o[1:],)]
    hr.create_stream_tables(
        {
            "totals": "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
            "ns": "SELECT n FROM totals",
            '"Odd name"': "SELECT id FROM parts",
        }
    )
    return [o for o in before if o[1] != "headrace"]


@pytest.mark.parametrize("by_hand", [False, True])
def test_nothing_is_left(
    dsn: str, tmp_path: Path, spark: SparkSession, sql: psycopg.Connection, by_hand: bool
) -> None:
    hr = headrace.connect(dsn=dsn, home=tmp_path, spark=spark)
    before = _install(hr, sql)
    text = hr.uninstall_sql()
    if by_hand:
        hr.close()
        sql.execute(text)
    else:
        hr.uninstall()
        assert list((tmp_path / "store").iterdir()) == []
    assert sql.execute(OBJECTS).fetchall() == before
    sql.execute("INSERT INTO orders VALUES (10, 1); INSERT INTO parts VALUES (1, 1)")
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as again:
        assert again.status() == ()
        again.create_stream_table("ids", "SELECT id FROM orders")
        assert sql.execute("SELECT count(*) FROM ids").fetchone() == (10,)


def test_tables_may_stay(
    dsn: str, tmp_path: Path, spark: SparkSession, sql: psycopg.Connection
) -> None:
    hr = headrace.connect(dsn=dsn, home=tmp_path, spark=spark)
    before = _install(hr, sql)
    sql.execute("CREATE VIEW seen AS SELECT n FROM totals")
    with pytest.raises(headrace.UserError) as caught:
        hr.uninstall()
    assert (caught.value.code, "seen" in (caught.value.detail or "")) == ("has-dependents", True)
    assert hr.verify("ns", source=True).equal
    hr.uninstall(keep_tables=True)
    kept = [("r", "public", name) for name in ("Odd name", "ns", "totals")]
    assert sorted(sql.execute(OBJECTS).fetchall()) == sorted(
        [*before, *kept, ("v", "public", "seen")]
    )
    sql.execute("UPDATE totals SET n = n + 1")
    assert sql.execute("TABLE seen").fetchall() == [(4,)] * 3
    assert sql.execute("TABLE ns").fetchall() == [(3,)] * 3


@pytest.mark.parametrize(
    ("when", "kind"), [("after", "RemoveCapture"), ("after", "DropLog"), ("after", "RemoveCatalog")]
)
def test_one_that_dies_is_finished_by_the_next(
    dsn: str,
    tmp_path: Path,
    spark: SparkSession,
    sql: psycopg.Connection,
    when: str,
    kind: str,
) -> None:
    def watch(at: str, step: Step) -> None:
        if (at, type(step).__name__) == (when, kind):
            raise KeyboardInterrupt

    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        before = _install(hr, sql)
        hr._engine.watch = watch
        with pytest.raises(KeyboardInterrupt):
            hr.uninstall()
    with headrace.connect(dsn=dsn, home=tmp_path, spark=spark) as hr:
        hr.uninstall()
    assert sql.execute(OBJECTS).fetchall() == before
    assert list((tmp_path / "store").iterdir()) == []


def test_one_that_fails_leaves_everything_in_place(
    dsn: str, tmp_path: Path, spark: SparkSession, sql: psycopg.Connection, server: EmbeddedServer
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    sql.execute("DROP ROLE IF EXISTS leaver; CREATE ROLE leaver LOGIN")
    sql.execute(
        f'GRANT CREATE ON DATABASE "{sql.info.dbname}" TO leaver;'
        "GRANT ALL ON SCHEMA public TO leaver; GRANT SELECT ON orders TO leaver"
    )
    restricted = dsn.replace("postgres@", "leaver@", 1)
    with (
        extra_database(server) as elsewhere,
        psycopg.connect(elsewhere, autocommit=True) as other,
        headrace.connect(dsn=restricted, home=tmp_path, spark=spark) as hr,
    ):
        other.execute("CREATE TABLE clients (id int PRIMARY KEY)")
        hr.attach("crm", elsewhere)
        sql.execute(hr.cdc_sql("orders"))
        hr.create_stream_table("ids", "SELECT id FROM orders")
        hr.create_stream_table("names", "SELECT id FROM crm.public.clients")
        before = [connection.execute(OBJECTS).fetchall() for connection in (sql, other)]
        with pytest.raises(headrace.UserError) as caught:
            hr.uninstall()
        assert caught.value.code == "permission-denied"
        assert [c.execute(OBJECTS).fetchall() for c in (sql, other)] == before
        sql.execute("INSERT INTO orders VALUES (1)")
        other.execute("INSERT INTO clients VALUES (1)")
        for name in ("ids", "names"):
            assert hr.refresh(name).mode == "DIFFERENTIAL"
            assert hr.verify(name, source=True).equal
        sql.execute("ALTER TABLE orders OWNER TO leaver; DROP OWNED BY leaver CASCADE")
    sql.execute("DROP ROLE leaver")
