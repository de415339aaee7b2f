"""Altering a stream table: in place, all or nothing, together with its readers."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from headrace.catalog.records import Relation
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e
PARTED = (
    "SELECT region, customer, count(*) AS n, sum(amount) AS total FROM orders"
    " GROUP BY region, customer"
)
TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def totals(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 4, i FROM generate_series(1, 12) i")
    project.create_stream_table("totals", TOTALS)
    return project


def test_what_users_made_of_a_served_table_survives(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("DROP ROLE IF EXISTS alter_reader")
    sql.execute("CREATE ROLE alter_reader")
    sql.execute("GRANT SELECT ON totals TO alter_reader")
    sql.execute("CREATE INDEX mine ON totals (total)")
    sql.execute("COMMENT ON TABLE totals IS 'ours'")
    sql.execute("COMMENT ON COLUMN totals.n IS 'how many'")
    sql.execute("CREATE VIEW top AS SELECT customer, total FROM totals WHERE total > 15")
    kept = sql.execute("SELECT ctid, customer FROM totals WHERE customer = 1").fetchone()
    before = _made(sql)
    query = TOTALS.replace("FROM orders", "FROM orders WHERE id <> 2")
    status = totals.alter_stream_table("totals", query=query)
    assert (status.name, status.status) == ("public.totals", "ACTIVE")
    assert_served(totals, sql, "totals")
    assert totals.verify("totals", source=True).equal
    assert _made(sql) == before
    assert kept == sql.execute("SELECT ctid, customer FROM totals WHERE customer = 1").fetchone()
    last, first = totals.history("totals")
    assert (last.mode, last.reason) == ("FULL", "the query was altered")
    assert first.reason == "first refresh"
    sql.execute("INSERT INTO orders VALUES (20, 1, 5)")
    assert totals.refresh("totals").mode == "DIFFERENTIAL"
    assert_served(totals, sql, "totals")
    sql.execute("DROP VIEW top; DROP OWNED BY alter_reader; DROP ROLE alter_reader")


def _made(sql: psycopg.Connection) -> list[object]:
    oid = "'totals'::regclass"
    return [
        sql.execute(f"SELECT {oid}::oid, relacl::text FROM pg_class WHERE oid = {oid}").fetchall(),
        sql.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'mine'").fetchall(),
        sql.execute(f"SELECT obj_description({oid}), col_description({oid}, 2)").fetchall(),
        sql.execute("SELECT pg_get_viewdef('top'::regclass)").fetchall(),
        sql.execute(f"SELECT count(*) FROM pg_index WHERE indrelid = {oid}").fetchall(),
        sql.execute(f"SELECT tgname FROM pg_trigger WHERE tgrelid = {oid}").fetchall(),
    ]


def test_other_columns(totals: headrace.Headrace, sql: psycopg.Connection) -> None:
    totals.create_stream_table("rich", "SELECT customer, total FROM totals WHERE total > 5.5")
    totals.create_stream_table("whole", "SELECT * FROM rich")
    retyped = (
        "SELECT 'c' || customer AS customer, avg(amount) AS total, sum(id) AS ids"
        " FROM orders GROUP BY customer"
    )
    totals.alter_stream_table("totals", query=retyped)
    assert_served(totals, sql, "totals")
    names = [d.name for d in sql.execute("TABLE totals").description]
    assert sorted(names) == ["customer", "ids", "total"]
    for name in ("rich", "whole"):
        expected = f"SELECT * FROM ({retyped}) t WHERE total > 5.5"
        wanted = sql.execute(f"SELECT customer, round(total, 9) FROM ({expected}) x").fetchall()
        served = sql.execute(f"SELECT customer, round(total, 9) FROM {name}").fetchall()
        assert sorted(served) == sorted(wanted)
        assert totals.verify(name, source=True).equal
        assert totals.history(name)[0].mode == "FULL"
    assert len({table.epoch for table in totals.status()}) == 1
    sql.execute("UPDATE orders SET amount = amount + 3 WHERE id < 5")
    assert totals.refresh("whole").mode == "DIFFERENTIAL"
    assert totals.verify("whole", source=True).equal


def test_nothing_happens_where_somebody_needs_a_column_that_would_go(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    def unchanged() -> None:
        assert_served(totals, sql, "totals")
        assert len(totals.history("totals")) == 1
        assert sorted(path.name for path in (totals.home / "store").iterdir()) == logs

    logs = sorted(path.name for path in (totals.home / "store").iterdir())
    sql.execute("CREATE VIEW needs AS SELECT n FROM totals")
    without = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    for query in (without, TOTALS.replace("count(*)", "sum(id)::numeric(20,2)")):
        with pytest.raises(headrace.UserError) as caught:
            totals.alter_stream_table("totals", query=query)
        assert caught.value.code == "has-dependents"
        assert "needs" in (caught.value.detail or "")
        unchanged()
    sql.execute("DROP VIEW needs")
    totals.create_stream_table("counts", "SELECT n FROM totals")
    logs = sorted(path.name for path in (totals.home / "store").iterdir())
    with pytest.raises(headrace.UserError) as caught:
        totals.alter_stream_table("totals", query=without)
    assert caught.value.code == "has-dependents"
    assert "public.counts" in caught.value.message
    unchanged()
    for query, path in (
        ("SELECT n FROM totals", "public.totals → public.totals"),
        ("SELECT n FROM counts", "public.totals → public.counts → public.totals"),
    ):
        with pytest.raises(headrace.UserError) as caught:
            totals.alter_stream_table("totals", query=query)
        assert (caught.value.code, path in (caught.value.detail or "")) == ("circular", True)
    unchanged()


def test_options_and_names(totals: headrace.Headrace, sql: psycopg.Connection) -> None:
    totals.create_stream_table("ns", "SELECT n FROM totals")
    status = totals.alter_stream_table("totals", schedule="1m", refresh_mode="FULL")
    assert (status.schedule, status.refresh_mode) == ("1m", "FULL")
    assert totals.alter_stream_table("totals", schedule=None).refresh_mode == "FULL"
    sql.execute("CREATE SCHEMA sales")
    assert totals.alter_stream_table("totals", rename_to="Sums").name == "public.sums"
    assert totals.alter_stream_table("sums", rename_to="sales.sums").name == "sales.sums"
    assert len(totals.history("sales.sums")) == 1, "nothing was computed"
    sql.execute("INSERT INTO orders VALUES (20, 1, 5)")
    assert totals.refresh("ns").mode == "DIFFERENTIAL"
    served = sql.execute("SELECT n FROM ns ORDER BY 1").fetchall()
    assert served == sql.execute("SELECT n FROM sales.sums ORDER BY 1").fetchall()
    assert totals.reinit("ns").mode == "FULL", "its query still says totals"
    assert totals.verify("ns").equal
    query = "SELECT n FROM sales.sums WHERE n > 3"
    totals.alter_stream_table("ns", query=query, rename_to="many", schedule="5s")
    assert sql.execute("TABLE many").fetchall() == [(4,)]
    assert totals.status()[0].schedule == "5s"
    for wrong, code in (("orders", "name-exists"), ("a.b", "invalid-name"), ("", "invalid-name")):
        with pytest.raises(headrace.UserError) as caught:
            totals.alter_stream_table("many", rename_to=wrong)
        assert caught.value.code == code


def test_keys_that_become_one_when_they_are_cast(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE prices (price numeric(4, 2), whole int)")
    sql.execute("INSERT INTO prices VALUES (1.10, 1), (1.20, 1), (2.50, 2)")
    query = "SELECT {} AS price, count(*) AS n FROM prices GROUP BY {}"
    project.create_stream_table("counts", query.format("price", "price"))
    project.alter_stream_table("counts", query=query.format("whole", "whole"))
    assert sorted(sql.execute("TABLE counts")) == [(1, 2), (2, 1)]
    sql.execute("INSERT INTO prices VALUES (1.30, 1)")
    assert project.refresh("counts").mode == "DIFFERENTIAL"
    assert_served(project, sql, "counts")


def test_a_transaction_that_reads_a_served_table_is_distinguished_from_a_bug(
    totals: headrace.Headrace, sql: psycopg.Connection
) -> None:
    query = TOTALS.replace("count(*)", "count(*)::numeric(20, 2)")
    with sql.transaction():
        sql.execute("TABLE totals")
        with pytest.raises(headrace.Transient) as caught:
            totals.alter_stream_table("totals", query=query)
    assert caught.value.code == "source-locked"
    assert len(totals.history("totals")) == 1
    assert_served(totals, sql, "totals")


def _partitions(sql: psycopg.Connection, name: str) -> int:
    """How many partitions a table has; -1 if it is not partitioned."""
    (kind,) = sql.execute(
        "SELECT relkind::text FROM pg_class WHERE relname = %s", [name]
    ).fetchall()
    (found,) = sql.execute(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = %s::regclass", [name]
    ).fetchall()
    return int(found[0]) if kind == ("p",) else -1


def test_a_partitioned_table_is_kept_and_altered(
    project: headrace.Headrace, sql: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, customer int, amount int)")
    sql.execute(
        "INSERT INTO orders SELECT i, nullif('r' || i % 4, 'r0'), i % 3, i"
        " FROM generate_series(1, 40) i"
    )
    project.create_stream_table("parted", PARTED, partition_by="region")
    above = "SELECT region, sum(total) AS total FROM parted GROUP BY region"
    project.create_stream_table("above", above, partition_by="region")
    assert (_partitions(sql, "parted"), _partitions(sql, "above")) == (4, 4)
    for statement, partitions in (
        ("INSERT INTO orders VALUES (50, '', 1, 5), (51, 'r1', 7, 5)", 5),
        ("DELETE FROM orders WHERE region = 'r2'", 5),
        ("UPDATE orders SET region = 'it''s new' WHERE region IS NULL AND id > 20", 6),
        ("UPDATE orders SET region = 'r2', customer = NULL WHERE region = 'r3'", 6),
    ):
        sql.execute(statement)
        assert project.refresh("above").mode == "DIFFERENTIAL"
        for name in ("parted", "above"):
            assert_served(project, sql, name)
            assert _partitions(sql, name) == partitions
    assert project.verify("parted", source=True).equal
    # A reader in Spark asks the files for the value alone, and they are written apart by it.
    frame = project.table("parted").where("region = 'r1'")
    assert sorted(row.customer for row in frame.collect()) == [0, 1, 2, 7]
    capsys.readouterr()
    frame.explain()
    scans = [line for line in capsys.readouterr().out.splitlines() if "PushedFilters" in line]
    assert scans and all("EqualTo(c1,r1)" in line for line in scans)
    engine = project._engine
    relation = _relation(project, "parted")
    assert engine.store.arrangement(relation.id, relation.pin).apart == "c1"

    project.alter_stream_table("parted", partition_by="customer")
    assert (project.history("parted")[0].mode, project.history("parted")[0].reason) == (
        "FULL",
        "the partitioning was altered",
    )
    assert _partitions(sql, "parted") == 5
    relation = _relation(project, "parted")
    assert engine.store.arrangement(relation.id, relation.pin).apart == "c2"
    project.reinit("parted")
    sql.execute("UPDATE orders SET customer = 9, amount = amount + 1 WHERE customer = 1")
    assert project.refresh("above").mode == "DIFFERENTIAL"
    for name in ("parted", "above"):
        assert_served(project, sql, name)
        assert project.verify(name, source=True).equal
    project.alter_stream_table("parted", partition_by=None)
    assert _partitions(sql, "parted") == -1
    assert_served(project, sql, "parted")
    project.drop_stream_table("parted", cascade=True)
    left = sql.execute("SELECT relname FROM pg_class WHERE relname ~ '^headrace_(part|rows)_'")
    assert left.fetchall() == []


def _relation(project: headrace.Headrace, name: str) -> Relation:
    state = project._engine.catalog.state()
    table = state.stream_table("public", name)
    assert table is not None
    return state.relation(table.relation)
