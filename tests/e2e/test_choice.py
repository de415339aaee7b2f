"""Incremental or full by what refreshes took: whichever way, what is served and read is exact."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

import headrace
from headrace.catalog.records import Effort, Refresh
from headrace.refresh.strategy import CHEAPER, INCREMENTAL

pytestmark = pytest.mark.e2e

TOTALS = "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer"
SUMMARY = "SELECT n, count(*) AS customers, sum(total) AS total FROM totals GROUP BY n"
EXPECTED = {
    "totals": TOTALS,
    "kept": TOTALS,
    "summary": f"SELECT n, count(*), sum(total) FROM ({TOTALS}) AS totals GROUP BY n",
}


def test_a_source_that_is_rewritten_is_read_in_full(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    sql.execute("INSERT INTO orders SELECT i, i % 700, i FROM generate_series(1, 12000) i")
    project.create_stream_table("totals", TOTALS)
    project.create_stream_table("kept", TOTALS, refresh_mode="DIFFERENTIAL")
    project.create_stream_table("summary", SUMMARY)

    def refreshed() -> dict[str, Refresh]:
        project.refresh("kept")
        project.refresh("summary")
        for name, query in EXPECTED.items():
            served, expected = (Counter(sql.execute(q)) for q in (f"TABLE {name}", query))
            assert served == expected
        return {name: project.history(name, 1)[0] for name in EXPECTED}

    sql.execute("UPDATE orders SET amount = amount + 1 WHERE id <= 50")
    done = refreshed()
    assert {name: one.mode for name, one in done.items()} == dict.fromkeys(done, "DIFFERENTIAL")
    assert done["totals"].reason.startswith(f"{INCREMENTAL}: about ")
    assert effort_of(done["totals"]).rows == 100

    sql.execute("UPDATE orders SET amount = amount + 1, customer = customer + id % 3 WHERE id > 9")
    done = refreshed()
    assert (done["totals"].mode, done["kept"].mode) == ("FULL", "DIFFERENTIAL")
    assert done["totals"].reason.startswith(f"{CHEAPER}: about ")
    assert " incrementally, for 23,982 changed rows, with " in done["totals"].reason
    assert {stage.mode for stage in done["totals"].stages} == {"FULL"}
    assert {stage.reason for stage in done["totals"].stages} == {CHEAPER}
    assert done["kept"].reason == INCREMENTAL
    assert done["summary"].mode == "DIFFERENTIAL", "what reads it gets a change"
    assert done["totals"].rows_inserted == done["kept"].rows_inserted
    assert done["totals"].rows_deleted == done["kept"].rows_deleted
    taken = effort_of(done["totals"])
    assert taken.incremental is not None
    assert taken.full is not None
    assert taken.incremental > taken.full
    assert taken.seconds > 0

    sql.execute("DELETE FROM orders WHERE id % 100 = 0")
    assert project.refresh("totals", "DIFFERENTIAL").mode == "DIFFERENTIAL"
    done = refreshed()
    assert done["totals"].mode == "DIFFERENTIAL", "what was computed in full can be followed"
    assert project.refresh("summary").mode == "SKIPPED"
    assert project.verify("totals", source=True).equal

    explained = str(project.explain("totals")).splitlines()
    place = explained.index("incremental or full")
    assert explained[place + 1].startswith("  full takes about ")
    assert explained[place + 2].startswith("  incremental took about ")
    assert "  always incremental: refresh_mode is DIFFERENTIAL" in str(project.explain("kept"))


def effort_of(refresh: Refresh) -> Effort:
    assert refresh.effort is not None
    return refresh.effort
