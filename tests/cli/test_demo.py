"""What the demo shows, from figures made up here; and nothing of it is wider than the screen."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.demo_report import (
    demo_document,
    next_steps,
    show_event,
    show_outcome,
    summary,
    wrote,
)
from headrace.cli.screen import Screen
from headrace.demo.outcome import (
    Checked,
    Created,
    Opened,
    Outcome,
    Pair,
    Round,
    Timed,
    middle,
    phases,
)
from headrace.demo.shop import Shop
from headrace.demo.trade import TradeTotals
from headrace.demo.views import ChangedRow, DemoView, change_text, changes, pick, value_text, views
from tests.cli.examples import receipt, refresh

BEST, CUSTOMERS, DAYS, OPEN = views(40_000)
OLD = {"id": 1, "product": "Oak tray", "sold": 9, "revenue": Decimal("21000.10")}
NEW = {"id": 1, "product": "Oak tray", "sold": 9, "revenue": Decimal("21500.10")}


def timed(view: DemoView, seconds: float, mode: str = "DIFFERENTIAL", **given: Any) -> Timed:
    return Timed(view, refresh(mode), seconds, **given)


def outcome(equal: bool = True) -> Outcome:
    every = (BEST, CUSTOMERS, DAYS, OPEN)
    samples = (ChangedRow(OLD, NEW),)
    first = tuple(timed(view, 9.0) for view in every)
    second = tuple(timed(view, 0.2) for view in every)
    third = (
        timed(BEST, 0.25, samples=samples),
        *(timed(view, 0.02, "SKIPPED") for view in every[1:]),
    )
    rounds = tuple(
        Round(number, number * 2.5, TradeTotals(1234, 12345, 678, 901, 23), refreshes)
        for number, refreshes in enumerate((first, second, third), 1)
    )
    return Outcome(
        Opened(Shop({"customers": 1250, "order_lines": 39998}), 0.5),
        tuple(Created(view, 1250, 4.5) for view in every),
        rounds,
        tuple(timed(view, 0.03, "SKIPPED") for view in every),
        tuple(
            Pair(timed(view, fast), timed(view, full, "FULL"))
            for fast, full in ((0.2, 0.5), (0.25, 0.6), (0.3, 2.0))
            for view in every
        ),
        tuple(Checked(view, receipt(equal or view != DAYS), 1.0) for view in every),
        61.0,
    )


def test_what_changed_between_two_readings() -> None:
    gone, new = {**OLD, "id": 2}, {**OLD, "id": 3}
    found = changes({(1,): OLD, (2,): gone, (4,): OLD}, {(1,): NEW, (3,): new, (4,): OLD})
    assert found == (ChangedRow(OLD, NEW), ChangedRow(gone, None), ChangedRow(None, new))
    assert [pick(found, number) for number in range(3)] == [found[0], found[2], found[1]]
    assert pick(found[:1], 2) == found[0]
    assert pick((), 1) is None


def test_a_sample_is_described_in_one_line() -> None:
    assert change_text(BEST, ChangedRow(OLD, NEW)) == "Oak tray: revenue 21,000 → 21,500"
    close = {**OLD, "revenue": Decimal("21000.20")}
    assert change_text(BEST, ChangedRow(OLD, close)) == "Oak tray: revenue 21000.10 → 21000.20"
    assert change_text(BEST, ChangedRow(OLD, {**OLD, "sold": 10})) == "Oak tray: sold 9 → 10"
    assert change_text(BEST, ChangedRow(None, NEW)) == "Oak tray: new, revenue 21,500"
    assert change_text(BEST, ChangedRow(OLD, None)) == "Oak tray: gone, revenue 21,000"
    assert [value_text(date(2026, 3, 1)), value_text(Decimal("9.5")), value_text(1200)] == [
        "2026-03-01",
        "9.50",
        "1,200",
    ]


def test_medians_are_over_incremental_refreshes_only() -> None:
    run = outcome()
    assert [one.seconds for one in run.live(BEST)] == [9.0, 0.2, 0.25]
    assert middle(run.live(BEST)) == 0.25
    assert middle(run.live(DAYS)) == pytest.approx(4.6)
    assert run.ratio(BEST) == pytest.approx(0.6 / 0.25)
    skipped = Pair(timed(BEST, 0.01, "SKIPPED"), timed(BEST, 9.0, "FULL"))
    assert replace(run, pairs=(*run.pairs, skipped)).ratio(BEST) == run.ratio(BEST)
    assert replace(run, pairs=(skipped,)).ratio(BEST) is None
    assert middle(()) is None
    assert phases(run.live(BEST)) == {"cut": 0.02, "compute": 0.11}
    assert run.written == TradeTotals(3702, 37035, 2034, 2703, 69)


def test_one_wrong_table_makes_the_demo_fail() -> None:
    assert outcome().equal
    assert not outcome(equal=False).equal
    assert "every table is exactly what its query says" in summary(outcome())
    assert "NOT what their queries say: daily_totals" in summary(outcome(equal=False))


def test_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    screen, run = Screen(pipe_width=80), outcome()
    for event in (run.opened, *run.created, *run.rounds):
        show_event(screen, event)
    show_outcome(screen, run, Path("/tmp/shop"), kept=True)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "Oak tray: revenue 21,000 → 21,500" in text
    assert "2.4 ×" in text
    assert "A refresh with nothing new: 30 ms and 4 Spark jobs." in text
    assert "headrace --home /tmp/shop status" in text
    assert "\x1b" not in text


def test_words() -> None:
    assert wrote(TradeTotals()) == "the shop wrote nothing"
    assert wrote(TradeTotals(1, 1, 2, 3)) == "1 transaction: 1 row in, 2 changed, 3 out"
    assert wrote(TradeTotals(2, 4, rolled_back=1)).endswith("0 out; 1 rolled back")
    assert all("shop-demo" in line or "headrace" in line for line in next_steps(outcome(), None))


def test_the_document() -> None:
    document = demo_document(outcome(), Path("/tmp/shop"))
    json.dumps(document)
    assert list(document) == ["equal", "seconds", "home", "shop", "written", "rounds", "tables"]
    best = document["tables"][0]
    assert (best["live_refreshes"], best["refresh_median"], best["full_median"]) == (3, 0.25, 0.6)
    assert best["full_over_refresh"] == pytest.approx(2.4)
    assert document["rounds"][2]["refreshes"][0]["sample"].startswith("Oak tray")
