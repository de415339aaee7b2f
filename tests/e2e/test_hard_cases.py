"""Cases that were once wrong, or would be in a simpler system."""

from __future__ import annotations

import shutil
from dataclasses import replace

import psycopg
import pytest

import headrace
from headrace.catalog import Change
from headrace.engine import HOME
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e


def test_a_row_that_is_long_gone_divides_by_nothing(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """Neither the filter nor the select list may see the deleted zero, on any path."""
    sql.execute("CREATE TABLE a (k int, x int); CREATE TABLE b (k int, y int)")
    sql.execute("INSERT INTO a VALUES (1, 6); INSERT INTO b VALUES (1, 3)")
    project.create_stream_table("filtered", "SELECT k FROM a WHERE 6 / x > 0")
    project.create_stream_table(
        "joined", "SELECT a.k, a.x / b.y AS q FROM a JOIN b ON a.k = b.k WHERE a.x / b.y > 0"
    )
    with sql.transaction():
        sql.execute("INSERT INTO a VALUES (2, 0)")
        sql.execute("DELETE FROM a WHERE k = 2")
    sql.execute("DELETE FROM a WHERE k = 1")
    sql.execute("UPDATE b SET y = 0")
    sql.execute("INSERT INTO a VALUES (3, 1); INSERT INTO b VALUES (3, 1)")
    for name in ("filtered", "joined"):
        assert project.refresh(name).mode == "DIFFERENTIAL"
        assert_served(project, sql, name)
        sql.execute("INSERT INTO a VALUES (4, 4)")
        assert project.refresh(name, mode="FULL").mode == "FULL"
        assert project.verify(name).equal


def test_a_key_that_is_dropped_takes_nothing_with_it(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE t (id int PRIMARY KEY, x int)")
    sql.execute("INSERT INTO t VALUES (1, 1)")
    project.create_stream_table("rows", "SELECT id, x FROM t")
    sql.execute("ALTER TABLE t DROP CONSTRAINT t_pkey")
    sql.execute("INSERT INTO t VALUES (1, 2), (1, 2)")
    project.refresh("rows")
    assert_served(project, sql, "rows")


def test_an_error_after_publishing_keeps_the_table(
    project: headrace.Headrace, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql.execute("CREATE TABLE t (id int)")
    sql.execute("INSERT INTO t VALUES (1)")
    publish = "headrace.refresh.run.publish"

    def late(*given: object, **named: object) -> None:
        from headrace.publish.publish import publish as really

        really(*given, **named)  # type: ignore[arg-type]
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(publish, late)
        with pytest.raises(headrace.InternalError) as caught:
            project.create_stream_table("kept", "SELECT id FROM t")
        assert caught.value.code == "internal-error"
        assert isinstance(caught.value.__cause__, ConnectionError)
    sql.execute("INSERT INTO t VALUES (2)")
    project.refresh("kept")
    assert_served(project, sql, "kept")


def test_a_lost_log_stops_only_what_needs_it(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE t (id int); CREATE TABLE u (id int)")
    project.create_stream_table("damaged", "SELECT id FROM t")
    project.create_stream_table("fine", "SELECT id FROM u")
    lost = project._engine.catalog.state().stream_table("public", "damaged")
    assert lost is not None
    shutil.rmtree(project.home / "store" / lost.relation)
    project._engine.distrust()
    sql.execute("INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)")
    project.refresh("fine")
    assert_served(project, sql, "fine")
    with pytest.raises(headrace.UserError) as caught:
        project.refresh("damaged")
    assert caught.value.code == "table-suspended"
    project.drop_stream_table("damaged")
    project.create_stream_table("damaged", "SELECT id FROM t")
    assert_served(project, sql, "damaged")


def test_one_column_after_the_other_goes(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE t (id int, x int, y int)")
    sql.execute("INSERT INTO t VALUES (1, 1, 1)")
    project.create_stream_table("both", "SELECT x, y FROM t")
    project.create_stream_table("ids", "SELECT id FROM t")
    for column in ("x", "y"):
        sql.execute(f"ALTER TABLE t DROP COLUMN {column}")
        sql.execute("INSERT INTO t VALUES (2)")
        project.refresh("ids")
        assert_served(project, sql, "ids")
    assert [table.status for table in project.status()] == ["SUSPENDED", "ACTIVE"]
    assert project.table("both").count() == 1, "what was published stays readable"


def test_another_server_is_not_continued_and_can_be_begun_with(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE t (id int)")
    project.create_stream_table("ids", "SELECT id FROM t")
    with project._engine.writing() as lease:
        database = project._engine.catalog.state().database(HOME)
        moved = replace(database, system_identifier="another", snapshot="900000000:900000000:")
        project._engine.catalog.commit(Change(put=(moved,)), fence=lease.fence)
    sql.execute("TRUNCATE t; INSERT INTO t VALUES (1)")
    sql.execute("CREATE TABLE u (id int)")
    with pytest.raises(headrace.NeedsReinit) as caught:
        project.create_stream_table("more", "SELECT id FROM u")
    assert caught.value.code == "source-rewound"
    project.drop_stream_table("ids")
    project.create_stream_table("ids", "SELECT id FROM t")
    assert_served(project, sql, "ids")


def test_averages_of_long_numerics(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE t (g int, a numeric(38,2), b numeric)")
    sql.execute(
        "INSERT INTO t VALUES (1, 12345678901234567890.12, 123456789012345), (1, 1, 1), (1, 1, 1)"
    )
    project.create_stream_table(
        "means", "SELECT g, avg(a) AS a, avg(b) AS b, sum(a) AS s FROM t GROUP BY g"
    )
    sql.execute("INSERT INTO t VALUES (1, 0.01, 0.5), (2, NULL, NULL)")
    project.refresh("means")
    receipt = project.verify("means")
    assert receipt.equal, receipt.detail


def test_wide_and_long_keys(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    columns = [f"k{i}" for i in range(34)]
    sql.execute(f"CREATE TABLE t ({', '.join(f'{c} int' for c in columns)}, long text)")
    sql.execute("INSERT INTO t (k1, long) VALUES (1, repeat('x', 9000)), (NULL, NULL)")
    project.create_stream_table(
        "wide", f"SELECT {', '.join(columns)}, count(*) AS n FROM t GROUP BY {', '.join(columns)}"
    )
    project.create_stream_table("long", "SELECT long, count(*) AS n FROM t GROUP BY long")
    sql.execute("INSERT INTO t (k1, long) VALUES (1, repeat('x', 9000)), (2, repeat('y', 9000))")
    sql.execute("DELETE FROM t WHERE k1 IS NULL")
    for name in ("wide", "long"):
        project.refresh(name)
        assert_served(project, sql, name)


def test_a_served_table_that_somebody_changed_is_not_published_over(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE t (g int, x int)")
    sql.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    project.create_stream_table("sums", "SELECT g, sum(x) AS s FROM t GROUP BY g")
    project.create_stream_table("rows", "SELECT g, x FROM t")
    with sql.transaction():
        sql.execute("SET LOCAL headrace.publishing = 'on'")
        sql.execute("DELETE FROM sums WHERE g = 1; DELETE FROM rows WHERE g = 1")
    sql.execute("UPDATE t SET x = x + 1")
    for name in ("sums", "rows"):
        with pytest.raises(headrace.InternalError) as caught:
            project.refresh(name)
        assert caught.value.code == "invariant"


def test_explain_shows_what_would_be_done(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE t (id int); CREATE TABLE explained (id int)")
    project.create_stream_table("ids", "SELECT id FROM t", refresh_mode="FULL")
    assert [stage.mode for stage in project.explain("ids").stages] == ["FULL"]
    assert project.explain(query="SELECT id FROM explained").stages[0].mode == "DIFFERENTIAL"


def test_equal_up_to_the_sign_of_zero(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE t (x float8, y real)")
    sql.execute("INSERT INTO t VALUES (0, '-0'), ('-0', 0), ('NaN', 'NaN')")
    project.create_stream_table("rows", "SELECT x, y FROM t")
    sql.execute("DELETE FROM t WHERE x::text = '0'")
    sql.execute("INSERT INTO t VALUES ('-0', '-0')")
    project.refresh("rows")
    image = "SELECT x::text, y::text FROM {} ORDER BY 1, 2"
    assert sql.execute(image.format("rows")).fetchall() == sql.execute(image.format("t")).fetchall()
