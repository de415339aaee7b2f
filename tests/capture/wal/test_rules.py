"""What is decided without a server: positions, which transactions a cut has, limits, obstacles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.capture.snapshot import Snapshot
from headrace.capture.wal.availability import Server, obstacles
from headrace.capture.wal.pending import LONGEST_PAUSE, pause
from headrace.capture.wal.slot import lsn_from_text, lsn_to_text
from headrace.capture.wal.slot_probe import Ceiling
from headrace.capture.wal.visibility import XID_RANGE, Committed, belongs, released, widened


@given(st.integers(0, 2**64 - 1))
def test_positions_there_and_back(position: int) -> None:
    assert lsn_from_text(lsn_to_text(position)) == position


def test_positions_as_postgresql_writes_them() -> None:
    assert lsn_from_text("16/B374D848") == 0x16B374D848
    assert lsn_to_text(0x16B374D848) == "16/B374D848"
    assert lsn_to_text(0) == "0/0"


@given(st.integers(3, 2**50), st.integers(-(2**31) + 1, 2**31 - 1))
def test_ids_are_widened_to_the_nearest(xmax: int, away: int) -> None:
    xid = max(xmax + away, 3)
    assert widened(xid % XID_RANGE, Snapshot(xmax, frozenset())) == xid


def test_a_transaction_is_of_the_first_cut_that_sees_it() -> None:
    before, now = Snapshot(100, frozenset({95})), Snapshot(110, frozenset({105}))
    of = {xid: belongs(xid, before, now) for xid in (94, 95, 100, 105, 109, 110)}
    assert of == {94: False, 95: True, 100: True, 105: False, 109: True, 110: False}
    assert belongs(94, None, now)


def test_ids_around_the_circle() -> None:
    before, now = Snapshot(XID_RANGE - 2, frozenset()), Snapshot(XID_RANGE + 5, frozenset())
    assert belongs(XID_RANGE - 1, before, now)
    assert belongs(4, before, now)
    assert not belongs(5, before, now)
    assert not belongs(XID_RANGE - 3, before, now)


@pytest.mark.parametrize(
    ("transactions", "position"),
    [
        ([], 1000),
        ([(1, 100), (2, 200)], 1000),
        ([(1, 100), (2, 1200)], 1200),
        ([(1, 100), (55, 200), (2, 300)], 100),
        ([(1, 100), (60, 200)], 100),
        ([(55, 100), (1, 200)], None),
    ],
)
def test_a_slot_lets_go_before_what_is_to_come(
    transactions: list[tuple[int, int]], position: int | None
) -> None:
    snapshot = Snapshot(60, frozenset({55}))
    assert released([Committed(*one) for one in transactions], snapshot, 1000) == position


def test_levels_of_lag() -> None:
    ceiling = Ceiling(warning=100, critical=1000)
    levels = {lag: ceiling.level(lag) for lag in (0, 99, 100, 999, 1000)}
    assert levels == {0: "fine", 99: "fine", 100: "warning", 999: "warning", 1000: "critical"}
    assert ceiling.level(80, safe=21) == "fine"
    assert ceiling.level(80, safe=20) == "warning"
    assert ceiling.level(80, safe=-5) == "warning"


def test_asking_rests_in_proportion() -> None:
    assert pause(0.0) == 0.0
    assert pause(0.1) == pytest.approx(1.0)
    assert pause(60.0) == LONGEST_PAUSE


GOOD = Server(180004, False, "logical", 10, 3, False, "reader", True)


def test_a_server_without_obstacles() -> None:
    assert obstacles(GOOD) == ()
    assert obstacles(replace(GOOD, slots=10, has_our_slot=True)) == ()
    for version in (150013, 160009, 170005, 180000):
        assert obstacles(replace(GOOD, version=version)) == ()


@pytest.mark.parametrize(
    ("server", "reason", "remedy"),
    [
        (replace(GOOD, version=150012), "before 15.13", "15.13 or later"),
        (replace(GOOD, version=170004), "before 17.5", "17.5 or later"),
        (replace(GOOD, standby=True), "standby", "primary"),
        (replace(GOOD, wal_level="replica"), "wal_level is replica", "wal_level = logical"),
        (replace(GOOD, slots=10), "max_replication_slots = 10", "max_replication_slots = 11"),
        (replace(GOOD, replication=False), "role reader", 'ALTER ROLE "reader" REPLICATION'),
    ],
)
def test_each_obstacle_says_what_to_change(server: Server, reason: str, remedy: str) -> None:
    (found,) = obstacles(server)
    assert reason in found.reason
    assert remedy in found.remedy


def test_all_obstacles_at_once() -> None:
    worst = Server(150001, True, "minimal", 0, 0, False, "reader", False)
    assert len(obstacles(worst)) == 5
