"""Recursion where it goes wrong elsewhere: support in circles, cycles out of reach, no end."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from headrace.catalog.records import Refresh
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

NEXT = "SELECT e.b FROM {} AS r JOIN edges AS e ON e.a = r.b"
BEGIN = "SELECT b FROM edges WHERE a = 0"
REACHED = f"WITH RECURSIVE r AS ({BEGIN} UNION {NEXT.format('r')}) SELECT b FROM r"
WALKS = f"WITH RECURSIVE r AS ({BEGIN} UNION ALL {NEXT.format('r')}) SELECT b FROM r"
RECOMPUTED = (
    "WITH RECURSIVE r (b, d) AS (SELECT b, 0 FROM edges WHERE a = 0 UNION ALL"
    " SELECT DISTINCT e.b, d + 1 FROM r JOIN edges AS e ON e.a = r.b WHERE d < 4) SELECT * FROM r"
)
CYCLE = {"near": f"{BEGIN} UNION {NEXT.format('far')}", "far": NEXT.format("near")}
ITSELF = {"itself": f"{BEGIN} UNION ALL {NEXT.format('itself')}"}


def rows(sql: psycopg.Connection, name: str) -> list[object]:
    return [row[0] for row in sql.execute(f"SELECT b FROM {name} ORDER BY b")]


def rounds(refresh: Refresh) -> list[tuple[str, bool]]:
    """The loops of a refresh: which way, and whether they found anything."""
    return [(run.mode, run.iterations > 0) for run in refresh.stages if run.iterations is not None]


@pytest.fixture
def edges(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    sql.execute("CREATE TABLE edges (a int, b int)")
    sql.execute("INSERT INTO edges VALUES (0, 1), (1, 2), (2, 3)")
    project.set("allow_circular", True)
    return project


def test_rows_that_only_support_each_other_go(
    edges: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """In a recursive query, in two tables that read each other, in one that reads itself."""
    sql.execute("INSERT INTO edges VALUES (3, 1)")
    edges.create_stream_table("reached", REACHED)
    edges.create_stream_tables(CYCLE | ITSELF)
    assert rows(sql, "near") == rows(sql, "far") == [1, 2, 3]
    assert rows(sql, "reached") == rows(sql, "itself") == [1, 2, 3]
    sql.execute("DELETE FROM edges WHERE a = 0")
    for name in ("reached", "near", "itself"):
        refresh = edges.refresh(name)
        assert (refresh.mode, refresh.rows_inserted, refresh.rows_deleted) == (
            "DIFFERENTIAL",
            0,
            3,
        )
        assert {*rounds(refresh)} == {("DIFFERENTIAL", True)}
    assert [rows(sql, name) for name in ("reached", "near", "far", "itself")] == [[]] * 4
    # And what comes back by another way is there once.
    sql.execute("INSERT INTO edges VALUES (0, 3)")
    for name in ("reached", "far", "itself"):
        assert edges.refresh(name).mode == "DIFFERENTIAL"
    assert [rows(sql, name) for name in ("reached", "near", "far", "itself")] == [[1, 2, 3]] * 4
    assert [edges.verify(name).equal for name in ("reached", "near", "far", "itself")] == [True] * 4


def test_a_cycle_that_is_opened_is_none(edges: headrace.Headrace) -> None:
    """Members know their component; what is left of it when one no longer reads the others."""
    edges.create_stream_tables(CYCLE | ITSELF)
    components = {status.name: status.scc_id for status in edges.status()}
    assert components["public.near"] == components["public.far"] is not None
    assert components["public.itself"] not in (None, components["public.near"])
    (alone, pair) = sorted(edges.scc_status(), key=lambda one: one.member_count)
    assert (alone.members, pair.members) == (("public.itself",), ("public.far", "public.near"))
    assert pair.monotone
    # Three rounds find a row each, and the last of these leads nowhere.
    assert pair.last_iterations == 3
    edges.alter_stream_table("near", query=BEGIN)
    components = {status.name: status.scc_id for status in edges.status()}
    assert components["public.near"] is components["public.far"] is None
    assert components["public.itself"] is not None


def test_a_cycle_that_the_base_no_longer_reaches(
    edges: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """Over levels: the edge into a cycle goes in the moment in which the cycle closes."""
    edges.create_stream_table("walks", WALKS)
    assert rows(sql, "walks") == [1, 2, 3]
    with sql.transaction():
        sql.execute("DELETE FROM edges WHERE a = 1")
        sql.execute("INSERT INTO edges VALUES (2, 2), (3, 2)")
    refresh = edges.refresh("walks")
    assert (refresh.mode, rounds(refresh)) == ("DIFFERENTIAL", [("DIFFERENTIAL", True)])
    assert (refresh.rows_inserted, refresh.rows_deleted) == (0, 2)
    assert_served(edges, sql, "walks")
    with sql.transaction():
        sql.execute("DELETE FROM edges WHERE b = 2")
        sql.execute("INSERT INTO edges VALUES (1, 2), (1, 2), (2, 9)")
    assert edges.refresh("walks").mode == "DIFFERENTIAL"
    assert rows(sql, "walks") == [1, 2, 2, 3, 3, 9, 9]
    assert_served(edges, sql, "walks")


def test_a_recursion_without_end(edges: headrace.Headrace, sql: psycopg.Connection) -> None:
    """Nothing is published, the table says why it is suspended, and it goes on when it can."""
    edges.set("max_recursion_levels", 12)
    edges.create_stream_table("walks", WALKS)
    epoch = edges.status()[0].epoch
    sql.execute("INSERT INTO edges VALUES (3, 1)")
    for mode in (None, "FULL"):
        with pytest.raises(headrace.UserError) as raised:
            edges.refresh("walks", mode)
        assert raised.value.code == "not-converged"
        assert "public.walks" in raised.value.message
        assert "12 rounds" in raised.value.message
        (status,) = edges.status()
        assert (status.status, status.epoch) == ("ERROR", epoch)
        assert status.reason == raised.value.message
        assert (edges.history("walks")[0].error or "").startswith("not-converged")
        assert rows(sql, "walks") == [1, 2, 3]
    with pytest.raises(headrace.UserError) as raised:
        edges.create_stream_table("more", WALKS)
    assert raised.value.code == "not-converged"
    assert "public.more" in raised.value.message
    assert [status.name for status in edges.status()] == ["public.walks"]
    sql.execute("DELETE FROM edges WHERE a = 3")
    sql.execute("INSERT INTO edges VALUES (3, 4)")
    refresh = edges.refresh("walks")
    assert (refresh.mode, refresh.rows_inserted) == ("DIFFERENTIAL", 1)
    assert edges.status()[0].status == "ACTIVE"
    assert_served(edges, sql, "walks")


def test_tables_that_read_each_other_without_end(
    edges: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """All members fail as one, and go on as one."""
    edges.set("max_fixpoint_iterations", 12)
    edges.create_stream_tables(
        {
            "up": "SELECT b FROM edges UNION SELECT b + 1 FROM down",
            "down": "SELECT u.b FROM up AS u WHERE EXISTS (SELECT FROM edges WHERE a = 99)",
        }
    )
    sql.execute("INSERT INTO edges VALUES (99, 5)")
    with pytest.raises(headrace.UserError) as raised:
        edges.refresh("down")
    assert raised.value.code == "not-converged"
    assert "public.down, public.up" in raised.value.message
    assert [status.status for status in edges.status()] == ["ERROR", "ERROR"]
    assert (rows(sql, "up"), rows(sql, "down")) == ([1, 2, 3], [])
    sql.execute("UPDATE edges SET a = 98 WHERE a = 99")
    assert edges.refresh("up").mode == "DIFFERENTIAL"
    assert [status.status for status in edges.status()] == ["ACTIVE", "ACTIVE"]
    assert (rows(sql, "up"), rows(sql, "down")) == ([1, 2, 3, 5], [])


def test_a_recursion_that_no_loop_follows_is_recomputed(
    edges: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """Its own rows stand under DISTINCT, level by level: the stage says so, and it is exact."""
    sql.execute("INSERT INTO edges VALUES (0, 2), (3, 1), (2, 2)")
    edges.create_stream_table("recomputed", RECOMPUTED)
    assert_served(edges, sql, "recomputed")
    sql.execute("DELETE FROM edges WHERE a = 0 AND b = 1")
    refresh = edges.refresh("recomputed")
    ((mode, some),) = rounds(refresh)
    assert (refresh.mode, mode, some) == ("DIFFERENTIAL", "FULL", True)
    assert "is recomputed" in refresh.stages[0].reason
    assert refresh.rows_deleted > 0
    assert_served(edges, sql, "recomputed")
    assert edges.refresh("recomputed").mode == "SKIPPED"


def test_strata_are_skipped_and_not_skipped(
    edges: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """A stratum into which nothing comes is not looked at; one with changes of its own is."""
    sql.execute("CREATE TABLE labels (b int, label text)")
    sql.execute("INSERT INTO labels VALUES (1, 'one'), (7, 'seven')")
    edges.create_stream_table("reached", REACHED)
    edges.create_stream_table("counted", "SELECT b, count(*) AS n FROM reached GROUP BY b")
    edges.create_stream_table(
        "named", "SELECT l.b, label FROM labels l WHERE l.b NOT IN (SELECT b FROM counted)"
    )
    strata = {status.name: status.stratum for status in edges.status()}
    assert strata == {"public.reached": 0, "public.counted": 1, "public.named": 2}
    sql.execute("INSERT INTO edges VALUES (3, 4)")
    assert edges.refresh("named").mode == "DIFFERENTIAL"
    assert_served(edges, sql, "named")
    shown = {status.name: status.as_of for status in edges.status()}
    # Nothing has changed: no stratum is looked at, and no timestamp moves.
    again = edges.refresh("named")
    assert (again.mode, again.strata_skipped, again.spark_jobs) == ("SKIPPED", 2, 0)
    assert {status.name: status.as_of for status in edges.status()} == shown
    # Only the uppermost has changes of its own.
    sql.execute("INSERT INTO labels VALUES (8, 'eight')")
    refresh = edges.refresh("named")
    assert (refresh.mode, refresh.strata_skipped, refresh.rows_inserted) == ("DIFFERENTIAL", 2, 1)
    assert_served(edges, sql, "named")
    (_, middle, _) = edges.stratum_status()
    assert middle.members == ("public.counted",)
    edges.set("enable_stratum_skip", False)
    assert edges.refresh("named").strata_skipped == 0


def test_a_stratum_with_a_table_that_lags_is_not_skipped(
    edges: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """What the lower table of a stratum took in before, the upper one has not."""
    edges.create_stream_table("lower", "SELECT a, b FROM edges")
    edges.create_stream_table("upper", "SELECT b FROM lower WHERE a > 0")
    edges.create_stream_table("counted", "SELECT count(*) AS n FROM upper")
    sql.execute("INSERT INTO edges VALUES (7, 8)")
    assert edges.refresh("lower").mode == "DIFFERENTIAL"
    assert edges.refresh("counted").mode == "DIFFERENTIAL"
    assert_served(edges, sql, "counted")


def test_a_recursion_over_a_cycle_is_a_set(
    edges: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """PostgreSQL would go round for ever with UNION ALL; the cycle's rows are each there once."""
    sql.execute("INSERT INTO edges VALUES (3, 1)")
    step = f"WITH RECURSIVE r AS (SELECT b FROM near UNION ALL {NEXT.format('r')}) SELECT b FROM r"
    edges.create_stream_tables({"near": f"{BEGIN} UNION SELECT b FROM far", "far": step})
    assert rows(sql, "near") == rows(sql, "far") == [1, 2, 3]
    assert edges.verify("far").equal
    sql.execute("DELETE FROM edges WHERE a = 2")
    assert {*rounds(edges.refresh("near"))} == {("DIFFERENTIAL", True)}
    assert rows(sql, "near") == rows(sql, "far") == [1, 2]
    assert edges.verify("near").equal
