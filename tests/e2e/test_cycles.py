"""Tables that read each other: made, refreshed, altered and dropped as one."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.walks import assert_walks, walks

__all__ = ("walks",)

pytestmark = pytest.mark.e2e

STEP = "SELECT v.src, e.dst FROM even v JOIN edges e ON e.src = v.dst"
ODD = f"SELECT src, dst FROM edges UNION {STEP}"


def relations(project: headrace.Headrace) -> dict[str, str]:
    return {one.name: one.relation for one in project._engine.catalog.state().stream_tables}


def test_a_pair_is_refreshed_as_one(walks: headrace.Headrace, sql: psycopg.Connection) -> None:
    assert_walks(walks, sql)
    made = [walks.history(name)[0] for name in ("even", "odd")]
    assert len({line.finished_at for line in made}) == 1, "one publish"
    sql.execute("INSERT INTO edges VALUES (2, 3), (8, 7)")
    assert walks.refresh("even").mode == "DIFFERENTIAL"
    assert_walks(walks, sql)
    # What 0 reaches supports itself by way of 1 and 2; with the one edge that feeds it, it goes.
    sql.execute("DELETE FROM edges WHERE src = 0")
    done = walks.refresh("odd")
    assert (done.mode, done.rows_inserted, done.rows_deleted) == ("DIFFERENTIAL", 0, 2)
    assert sql.execute("SELECT count(*) FROM even WHERE src = 0").fetchone() == (0,)
    assert_walks(walks, sql)
    sql.execute("DELETE FROM edges WHERE ctid IN (SELECT min(ctid) FROM edges WHERE src = 7)")
    sql.execute("UPDATE edges SET dst = 6 WHERE src = 5")
    assert walks.refresh("odd").mode == "DIFFERENTIAL"
    assert_walks(walks, sql)
    assert [walks.refresh(name).mode for name in ("even", "odd")] == ["SKIPPED", "SKIPPED"]
    assert walks.refresh("even", "FULL").mode == "FULL"
    assert_walks(walks, sql)
    assert walks.verify("even").equal
    assert walks.verify("odd").equal


def test_members_come_and_go_together(walks: headrace.Headrace, sql: psycopg.Connection) -> None:
    before = relations(walks)
    for refused, code in (
        (lambda: walks.drop_stream_table("odd"), "has-dependents"),
        (lambda: walks.alter_stream_table("odd", refresh_mode="FULL"), "invalid-option"),
        (
            lambda: walks.create_or_replace_stream_table("odd", ODD, refresh_mode="FULL"),
            "invalid-option",
        ),
        (
            lambda: walks.alter_stream_table("odd", query=f"{ODD} EXCEPT TABLE even"),
            "unstratifiable",
        ),
        (
            lambda: walks.alter_stream_table(
                "odd", query=ODD.replace("edges UNION", "other UNION")
            ),
            "unknown-table",
        ),
        (
            lambda: walks.alter_stream_table(
                "odd", query="SELECT src FROM edges UNION SELECT src FROM even"
            ),
            "has-dependents",
        ),
    ):
        with pytest.raises(headrace.UserError) as caught:
            refused()
        assert caught.value.code == code
        assert relations(walks) == before
    with pytest.raises(headrace.UserError) as caught:
        walks.drop_stream_table("odd")
    assert "It is in a cycle with public.even." in (caught.value.detail or "")
    walks.suspend("odd")
    sql.execute("INSERT INTO edges VALUES (3, 4)")
    for act in (walks.refresh, walks.reinit):
        with pytest.raises(headrace.UserError) as caught:
            act("even")
        assert (caught.value.code, "public.odd" in caught.value.message) == (
            "table-suspended",
            True,
        )
    walks.resume("odd")
    assert walks.refresh("even").mode == "DIFFERENTIAL"
    assert relations(walks) == before
    walks.reinit("even")
    after = relations(walks)
    assert not set(after.values()) & set(before.values()), "both are rebuilt"
    assert_walks(walks, sql)
    walks.drop_stream_table("even", cascade=True)
    assert walks.status() == ()
    assert sql.execute("SELECT to_regclass('even'), to_regclass('odd')").fetchone() == (None, None)
    assert walks._engine.catalog.state().relations == ()


def test_a_cycle_opens_and_closes(walks: headrace.Headrace, sql: psycopg.Connection) -> None:
    walks.create_stream_table("ends", "SELECT dst, count(*) AS n FROM even GROUP BY dst")
    before = relations(walks)
    walks.alter_stream_table("odd", query="SELECT src, dst FROM edges")
    opened = relations(walks)
    assert not set(opened.values()) & set(before.values()), "with all that read them"
    steps = "SELECT a.src, b.dst FROM edges a JOIN edges b ON b.src = a.dst ORDER BY 1, 2"
    assert (
        sql.execute("SELECT * FROM even ORDER BY 1, 2").fetchall() == sql.execute(steps).fetchall()
    )
    assert walks.alter_stream_table("odd", refresh_mode="FULL").refresh_mode == "FULL"
    with pytest.raises(headrace.UserError) as caught:
        walks.alter_stream_table("odd", query=ODD)
    assert (caught.value.code, relations(walks)) == ("invalid-option", opened)
    walks.alter_stream_table("odd", query=ODD, refresh_mode="AUTO")
    assert_walks(walks, sql)
    sql.execute("INSERT INTO edges VALUES (8, 0)")
    assert walks.refresh("ends").mode == "DIFFERENTIAL"
    assert_walks(walks, sql)
    counted = "SELECT dst, count(*) FROM even GROUP BY dst ORDER BY 1"
    assert (
        sql.execute("SELECT * FROM ends ORDER BY 1").fetchall() == sql.execute(counted).fetchall()
    )
    # A column that changes its type changes in all of them.
    wide = "SELECT src::bigint AS src, dst FROM edges UNION " + STEP
    walks.create_or_replace_stream_table("odd", wide)
    assert sql.execute("SELECT pg_typeof(src)::text FROM even LIMIT 1").fetchone() == ("bigint",)
    assert_walks(walks, sql)


def test_a_table_that_reads_itself(walks: headrace.Headrace, sql: psycopg.Connection) -> None:
    step = "SELECT r.src, e.dst FROM reach r JOIN edges e ON e.src = r.dst"
    walks.create_stream_table("reach", f"SELECT src, dst FROM odd UNION {step}")
    both = "SELECT src, dst FROM odd UNION SELECT src, dst FROM even ORDER BY 1, 2"
    sql.execute("INSERT INTO edges VALUES (2, 7); DELETE FROM edges WHERE src = 0")
    assert walks.refresh("reach").mode == "DIFFERENTIAL"
    assert_walks(walks, sql)
    assert sql.execute("TABLE reach ORDER BY 1, 2").fetchall() == sql.execute(both).fetchall()
    # A wider type of a source's column has all that read it rebuilt; one takes its whole cycle
    # along.
    sql.execute("ALTER TABLE edges ALTER COLUMN dst TYPE bigint")
    assert walks.refresh("even").mode == "FULL"
    assert {one.status for one in walks.status()} == {"ACTIVE"}
    assert_walks(walks, sql)
    types = "SELECT DISTINCT pg_typeof(dst)::text FROM {}"
    for name in ("odd", "even", "reach"):
        assert sql.execute(types.format(name)).fetchall() == [("bigint",)]
    assert sql.execute("TABLE reach ORDER BY 1, 2").fetchall() == sql.execute(both).fetchall()
    walks.drop_stream_table("reach")
    assert [one.name for one in walks.status()] == ["public.even", "public.odd"]
