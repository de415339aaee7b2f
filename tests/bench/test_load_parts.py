"""The parts of a load that its figures rest on: pace, mix of changes, lags, judgement."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from bench.load.lag import Lags, lags, percentile, written_until
from bench.load.mix import SHARES, Mixer, statement
from bench.load.options import Options, options
from bench.load.pacing import Pace, transaction_rows
from bench.load.report import highest_rates, line
from bench.load.shop import COLUMNS, FIRST_MARK, MARK, VIEWS, fill, rows_of
from bench.load.usage import spent
from bench.load.writers import BUCKET, ledger

ORDERS, WRITERS = 1000, 3


def test_options_are_read_and_checked() -> None:
    given = options(["RATES=50,200", "MODE=wal", "RATE_SECONDS=2.5", "SKIP=ivm", "ORDERS=2000"])
    assert (given.rates, given.rate_seconds, given.orders) == ((50, 200), 2.5, 2000)
    assert (given.capture_modes, given.skip) == (("wal",), {"ivm"})
    assert Options().capture_modes == ("trigger", "wal")
    wrong = (
        *("RATES=200,50", "RATES=0", "RATES=fast", "MODE=none", "SKIP=all", "NAME=1"),
        *("RATE_SECONDS=0", "ORDERS=10", "WRITERS=0"),
    )
    for one in wrong:
        with pytest.raises(SystemExit):
            options([one])


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([7.0], 0.5) == percentile([7.0], 0.99) == 7
    assert percentile([1.0, 2.0], 0.95) == 2


def test_a_mark_is_served_with_the_first_that_is_not_older() -> None:
    committed = {1: 10.0, 2: 11.0, 3: 12.0, 4: 13.0, 5: 14.0}
    # A poller that saw mark 1 before its commit had returned, then 3, then 4.
    shown = [(9.0, 0), (9.99, 1), (12.5, 3), (15.0, 4)]
    found = lags(committed, shown, end=20.0)
    assert found.seconds == pytest.approx((0, 1.5, 0.5, 2, 6))
    assert found.unserved == 1
    assert lags(committed, [], end=20.0).unserved == 5
    assert (found + Lags((3.0,))).document() == {
        "p50": 1500,
        "p95": 6000,
        "p99": 6000,
        "marks": 6,
        "unserved": 1,
    }
    assert Lags(()).document()["p95"] is None


def test_what_was_written_by_a_moment() -> None:
    commits = [(1.0, 5), (1.0 + BUCKET / 10, 5), (2.0, 7), (3.0, 1)]
    totals = ledger(commits)
    assert totals == [(1.0 + BUCKET / 10, 10), (2.0, 17), (3.0, 18)]
    assert [written_until(totals, at) for at in (0.5, 1.5, 2.0, 9.0)] == [0, 10, 17, 18]


@pytest.mark.parametrize(
    ("rate", "rows"), [(1, 1), (50, 2), (100, 5), (1000, 50), (5000, 50), (20_000, 50)]
)
def test_low_rates_have_small_transactions(rate: int, rows: int) -> None:
    assert transaction_rows(rate, 50) == rows


def written(pace: Pace, seconds: float, cost: float) -> list[float]:
    """Return when a writer begins its transactions, each of which takes so long."""
    now, begun = 0.0, []
    while (due := pace.next(now)) < seconds:
        now = max(now, due)
        begun.append(now)
        now += cost
    return begun


def test_a_fast_database_gets_exactly_the_rate() -> None:
    pace = Pace(rate=100, size=5, backlog=2, offset=0.01)
    begun = written(pace, 10, cost=0.001)
    assert len(begun) == 200
    assert begun[0] == 0.01
    assert {round(later - one, 6) for one, later in pairwise(begun)} == {0.05}
    assert (pace.skipped, round(pace.latest, 6)) == (0, 0)


def test_a_pause_is_made_up_for() -> None:
    pace = Pace(rate=100, size=5, backlog=2)
    assert pace.next(0.0) == 0
    assert pace.next(1.5) == 0.05
    assert pace.skipped == 0
    assert pace.latest == pytest.approx(1.45)


def test_a_slow_database_has_a_bounded_backlog() -> None:
    pace = Pace(rate=100, size=5, backlog=2)
    begun = written(pace, 10, cost=0.1)
    # Half of the rate was possible; the load ends at most one backlog after its time.
    assert len(begun) + pace.skipped == pytest.approx(200, abs=1)
    assert begun[-1] < 10 + 2
    assert 100 <= len(begun) <= 121
    assert pace.latest <= 2


def test_writers_repeat_themselves_and_share_no_row() -> None:
    def ids(number: int) -> dict[str, set[int]]:
        mixer, found = Mixer(number, WRITERS, ORDERS, seed=1), dict[str, set[int]]()
        for _ in range(300):
            for batch in mixer.transaction(7):
                found.setdefault(batch.table, set()).update(row[0] for row in batch.rows)
        return found

    assert ids(1) == ids(1)
    assert ids(0)["orders"] != ids(1)["orders"]
    for table in COLUMNS:
        of_writers = [ids(number)[table] for number in range(WRITERS)]
        assert sum(map(len, of_writers)) == len(set.union(*of_writers))
        assert 0 not in set.union(*of_writers)


@pytest.mark.parametrize("size", [1, 7, 50, 250])
def test_changes_keep_their_shares(size: int) -> None:
    assert sum(SHARES.values()) == 100
    for table in COLUMNS:
        assert SHARES.get((table, "insert"), 0) == SHARES.get((table, "delete"), 0)
    mixer, found = Mixer(0, 1, ORDERS, seed=3), Counter[tuple[str, str]]()
    for _ in range(100):
        batches = mixer.transaction(size)
        assert sum(len(batch.rows) for batch in batches) == size
        found.update({(batch.table, batch.verb): len(batch.rows) for batch in batches})
    assert found == {kind: share * size for kind, share in SHARES.items()}


@pytest.mark.postgres
def test_every_row_that_is_changed_is_there(dsn: str) -> None:
    """All statements change as many rows as they name, and tables keep their sizes."""
    with psycopg.connect(dsn, autocommit=True) as sql:
        fill(sql, ORDERS)
        mixers = [Mixer(number, WRITERS, ORDERS, seed=5) for number in range(WRITERS)]
        for number in range(120):
            for batch in mixers[number % WRITERS].transaction(25):
                assert sql.execute(*statement(batch)).rowcount == len(batch.rows), batch
        for table, rows in rows_of(ORDERS).items():
            count = sql.execute(f"SELECT count(*) FROM {table} WHERE id > 0".encode()).fetchone()
            assert count == (rows,)


@pytest.mark.postgres
def test_every_view_shows_a_mark(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as sql:
        fill(sql, ORDERS)
        for name, view in VIEWS.items():
            sql.execute(f"CREATE VIEW {name} AS {view.query}".encode())
        assert len(VIEWS) == 10
        for mark in (FIRST_MARK, FIRST_MARK + 1):
            for text in MARK:
                sql.execute(text.encode(), {"mark": mark})
            for name, view in VIEWS.items():
                assert sql.execute(view.shown(name).encode()).fetchone() == (mark,), name
                keys = ", ".join(view.key)
                rows = sql.execute(
                    f"SELECT count(*), count(DISTINCT ({keys})) FROM {name}".encode()
                )
                total, distinct = rows.fetchall()[0]
                assert total == distinct > 1, name


def rate(number: int, p95: float, other: float | None = None, **figures: Any) -> dict[str, Any]:
    """Return the figures of a rate with two tables."""

    def lag(milliseconds: float) -> dict[str, Any]:
        return {"p50": 1, "p95": milliseconds, "p99": 9999, "marks": 5, "unserved": 0}

    tables = {"one": lag(p95), "other": lag(p95 if other is None else other)}
    return {
        "rate": number,
        "achieved_rate": float(number),
        "achieved": True,
        "failures": [],
        "taken_in_per_second": 5.0,
        "lag_ms": lag(p95),
        "lag_ms_by_table": tables,
        "cpu_seconds": {"postgres": 1.5},
        **figures,
    }


def test_the_highest_rate_with_a_small_lag() -> None:
    rates = [rate(100, 900), rate(1000, 1999, 2500), rate(5000, 2000, 100)]
    assert highest_rates(rates) == {
        "all": 1000,
        "each": 100,
        "by_table": {"one": 1000, "other": 5000},
    }
    assert highest_rates([rate(100, 9000)])["all"] is None
    assert highest_rates([]) == {"all": None, "each": None, "by_table": {}}


def test_a_rate_that_was_not_achieved_does_not_count() -> None:
    for wrong in ({"achieved": False}, {"failures": ["a writer failed"]}):
        assert highest_rates([rate(100, 900), rate(1000, 900, **wrong)])["all"] == 100
    seen = rate(1000, 900, achieved=False, achieved_rate=700.0)
    assert line(seen).startswith("1000 changes/s; 700 achieved, not the rate; 5 taken in; lag")


def test_marks_that_are_missing_do_not_count() -> None:
    seen = rate(1000, 900)
    seen["lag_ms"] = {**seen["lag_ms"], "unserved": 2}
    assert highest_rates([seen])["all"] is None
    assert line(seen).endswith("2 marks not served")


def test_processor_time_between_two_readings() -> None:
    before, after = {"writers": 1.0, "jvm": 2.0}, {"writers": 1.26, "jvm": 5.0}
    assert spent(before, after) == {"jvm": 3.0, "writers": 0.3}
