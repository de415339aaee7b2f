from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.cli.words import age, change, counted, plain, seconds


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 ms"),
        (0.0004, "0.4 ms"),
        (0.0099, "9.9 ms"),
        (0.00996, "10 ms"),
        (0.087, "87 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (2.314, "2.31 s"),
        (9.996, "10.0 s"),
        (47.94, "47.9 s"),
        (99.96, "1 min 40 s"),
        (200.2, "3 min 20 s"),
        (7200.0, "2 h"),
    ],
)
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(hours=5, minutes=2, seconds=59), "5 h 2 min"),
        (timedelta(days=12, seconds=3), "12 d"),
    ],
)
def test_age(value: timedelta, shown: str) -> None:
    assert age(value) == shown


def test_counts() -> None:
    assert counted(1, "row") == "1 row"
    assert counted(12345, "row") == "12,345 rows"
    assert counted(0, "refresh", "refreshes") == "0 refreshes"
    assert change(1200, 3) == "+1,200 −3"
    assert change(0, 0) == "-"


def test_control_characters_are_spelled_out() -> None:
    assert plain("a\x1b[31mb\nÄ → 東京") == "a\\x1b[31mb\\nÄ → 東京"
