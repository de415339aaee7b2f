"""Snapshots compared by what is visible in them."""

from __future__ import annotations

import psycopg
import pytest

from headrace.capture.snapshot import Snapshot, contains


def test_what_is_visible() -> None:
    snapshot = Snapshot.read("10:14:10,12")
    assert [x for x in range(8, 16) if snapshot.sees(x)] == [8, 9, 11, 13]
    assert Snapshot.read("7:7:").sees(6)


@pytest.mark.parametrize(
    ("later", "earlier", "contained"),
    [
        ("10:10:", "10:10:", True),
        ("12:12:", "10:10:", True),
        ("10:10:", "11:11:", False),
        # 10 ran in both, or ended in between.
        ("10:12:10", "10:11:10", True),
        ("12:12:", "10:11:10", True),
        # 10 was running when the cut was taken and had committed when we asked.
        ("10:12:10", "11:11:", False),
        # What is beyond the cut only runs, so nobody sees it.
        ("10:10:", "10:12:10,11", True),
        ("10:10:", "10:12:10", False),
    ],
)
def test_contained(later: str, earlier: str, contained: bool) -> None:
    assert contains(later, earlier) is contained
    every = range(1, 20)
    one, other = Snapshot.read(later), Snapshot.read(earlier)
    assert contained is all(one.sees(x) for x in every if other.sees(x))


@pytest.mark.postgres
def test_the_server_s_own_text_is_read_as_the_server_reads_it(dsn: str) -> None:
    with (
        psycopg.connect(dsn) as running,
        psycopg.connect(dsn, autocommit=True) as ended,
        psycopg.connect(dsn, autocommit=True) as asking,
    ):
        row = running.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        ended.execute("SELECT pg_current_xact_id()")
        found = asking.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert found is not None
        snapshot = Snapshot.read(found[0])
        assert not snapshot.sees(row[0])
        for number in range(max(row[0] - 3, 3), row[0] + 4):
            said = asking.execute(
                "SELECT pg_visible_in_snapshot(%s::text::xid8, %s::pg_snapshot)",
                (str(number), found[0]),
            ).fetchone()
            assert said == (snapshot.sees(number),)
