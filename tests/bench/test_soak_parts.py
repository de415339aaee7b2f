"""The parts of a soak that need no server: its plan, its judgement and its picture."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.soak.blame import Failure, Wait, Window, long_waits, unexplained, waits_for_headrace
from bench.soak.bounds import GROWTH, MOST, bounds
from bench.soak.chart import chart
from bench.soak.check import Check
from bench.soak.daemon import Exit
from bench.soak.faults import ENDING, FAULTS
from bench.soak.options import Options, options
from bench.soak.outcome import Occurrence, Seen, outcome, unexpected
from bench.soak.plan import CHECKPOINT, SWITCH, calm_from, plan
from bench.soak.processes import catches
from bench.soak.report import lines
from bench.soak.transactions import Habits

KINDS = tuple(FAULTS)
HOURS = 7200.0


def test_a_seed_says_everything() -> None:
    assert plan(7, HOURS, 45, KINDS, ENDING) == plan(7, HOURS, 45, KINDS, ENDING)
    assert plan(7, HOURS, 45, KINDS, ENDING) != plan(8, HOURS, 45, KINDS, ENDING)


@pytest.mark.parametrize("seconds", [60.0, 180.0, HOURS])
def test_every_kind_of_fault_occurs(seconds: float) -> None:
    for seed in range(20):
        events = plan(seed, seconds, 45, KINDS, ENDING)
        assert set(KINDS) <= {event.kind for event in events}
        assert [event.at for event in events] == sorted(event.at for event in events)
        assert all(0 <= event.at < seconds for event in events)


def test_faults_of_a_long_soak_occur_about_equally_often() -> None:
    found = Counter(event.kind for event in plan(1, HOURS, 45, KINDS, ENDING))
    assert found.pop(CHECKPOINT) == 7
    assert sum(found.values()) == 160
    assert min(found.values()) >= 4


@pytest.mark.parametrize("seconds", [60.0, HOURS])
def test_the_last_third_is_one_life_of_the_daemon(seconds: float) -> None:
    for seed in range(20):
        for event in plan(seed, seconds, 45, KINDS, ENDING):
            assert event.kind not in ENDING or event.at < calm_from(seconds)


def test_the_mode_of_capture_changes_after_half_of_the_time() -> None:
    (switch,) = (e for e in plan(1, 180, 45, KINDS, ENDING, switch=True) if e.kind == SWITCH)
    assert switch.at == 90
    assert SWITCH not in {event.kind for event in plan(1, 180, 45, KINDS, ENDING)}


def test_no_fault_of_a_long_soak_lasts_into_the_next() -> None:
    faults = [e for e in plan(3, HOURS, 45, KINDS, ENDING) if e.kind != CHECKPOINT]
    for event, follower in pairwise(faults):
        assert event.at + event.hold <= follower.at


def test_writers_repeat_themselves_and_share_no_key() -> None:
    def transactions(number: int) -> list[object]:
        habits = iter(Habits(number, 4, Random(number)))
        return [next(habits) for _ in range(200)]

    assert transactions(1) == transactions(1)
    assert transactions(1) != transactions(2)
    keys = [{Habits(n, 4, Random(n)).key(60) for _ in range(500)} for n in range(4)]
    assert sum(map(len, keys)) == len(set.union(*keys))


# The application is 1 to 3, Headrace 8 and 9; who waits for whom, and whether 1 waits for Headrace.
WAITS: dict[str, tuple[dict[int, set[int]], bool]] = {
    "a lock of Headrace": ({1: {8}}, True),
    "a lock of the application": ({1: {2}}, False),
    "both": ({1: {2, 8}}, False),
    "Headrace queues behind the application": ({1: {8}, 8: {2}}, True),
    "the application queues behind Headrace": ({1: {2}, 2: {8}}, True),
    "DDL holds the lock, Headrace waits, too": ({1: {2, 8}, 8: {2}}, False),
    "a long queue": ({1: {2}, 2: {3}, 3: {8}, 8: {9}}, True),
    "a long queue of the application": ({1: {2}, 2: {3}}, False),
    "a deadlock with Headrace": ({1: {8}, 8: {1}}, True),
}


@pytest.mark.parametrize("case", WAITS)
def test_who_is_to_blame_for_a_wait(case: str) -> None:
    blockers, expected = WAITS[case]
    assert waits_for_headrace(1, blockers, {8, 9}) is expected


def test_a_wait_is_no_longer_than_its_statement() -> None:
    wait = Wait(20, 1.1, "soak writer 0", "INSERT", "LOCK")
    brief, other = replace(wait, seconds=0.9), replace(wait, session="soak ddl")
    assert long_waits([wait, brief, other], {}) == (wait, other)
    assert long_waits([wait, brief, other], {"soak writer 0": [(2, 4), (30, 31.5)]}) == (other,)
    slow = {"soak writer 0": [(19.8, 21)], "soak writer 1": []}
    assert long_waits([wait, brief, other], slow) == (wait, other)


def test_failures_that_no_server_fault_explains() -> None:
    window = Window("restart_server", 10, 12)
    cut = Failure(11, 3, "INSERT", "57P01", "terminating connection")
    refused = Failure(12.5, 11.5, "connect", None, "connection refused")
    failures = (
        cut,
        refused,
        # A session that was idle notices only when it is used again.
        replace(cut, at=30),
        # This one was opened after the server was back, and that one failed before it went.
        replace(cut, at=14, opened=13),
        replace(refused, at=9, opened=9),
        replace(cut, sqlstate="42501"),
    )
    assert unexplained(failures, [window]) == failures[3:]
    assert unexplained(failures, []) == failures


def samples(seconds: int = 7200, **figures: float) -> list[dict[str, float | None]]:
    steady: dict[str, float | None] = dict.fromkeys({*MOST, *GROWTH, "headrace_log_mb"}, 10)
    return [{**steady, **figures, "at": float(at)} for at in range(0, seconds, 10)]


def broken(counts: dict[str, int], taken: list[dict[str, float | None]]) -> list[str]:
    return [one.name for one in bounds(counts, taken, 4800) if not one.kept]


def test_a_soak_without_trouble_keeps_its_bounds() -> None:
    judged = bounds({"differences": 0}, samples(), 4800)
    assert all(one.kept for one in judged)
    assert {f"most {name}" for name in MOST} <= {one.name for one in judged}
    assert {f"growth of {name}" for name in GROWTH} <= {one.name for one in judged}


def test_a_single_difference_breaks_a_bound() -> None:
    assert broken({"differences": 1}, samples()) == ["differences"]


@pytest.mark.parametrize("name", MOST)
def test_one_sample_over_the_limit_breaks_a_bound(name: str) -> None:
    taken = samples()
    taken[5][name] = MOST[name] + 1
    assert broken({}, taken) == [f"most {name}"]


@pytest.mark.parametrize("name", GROWTH)
def test_growth_in_the_calm_part_breaks_a_bound(name: str) -> None:
    taken = samples()
    for sample in taken:
        sample[name] = 1 + 0.9 * MOST[name] * max(0, (sample["at"] or 0) - 4800) / 2400
    assert broken({}, taken) == [f"growth of {name}"]


def test_growth_before_the_calm_part_is_no_leak() -> None:
    taken = samples()
    for sample in taken:
        sample["daemon_rss_mb"] = min(sample["at"] or 0, 4800) / 10
    assert broken({}, taken) == []


def test_a_log_that_grows_too_fast() -> None:
    taken = samples()
    for sample in taken:
        sample["headrace_log_mb"] = (sample["at"] or 0) / 3600 * 51
    assert broken({}, taken) == ["headrace_log_mb an hour"]


def test_what_was_not_measured_is_not_judged() -> None:
    assert broken({}, [{"at": float(at)} for at in range(0, 7200, 10)]) == []


CHECK = Check(600, settled=1, rows=9)


def result(**changed: Any) -> dict[str, Any]:
    """The result of ten minutes in which nothing went wrong but what is given."""
    event = Occurrence(5.0, "kill_daemon", "SIGKILL of the daemon", 0.1, recovered=2)
    seen = Seen(events=[event], checks=[CHECK], samples=samples(600))
    judged = outcome(Options(hours=1 / 6), replace(seen, **changed), 400)
    return {"faults_left_out": [], **judged}


def test_a_soak_in_which_nothing_went_wrong() -> None:
    found = result()
    assert found["ok"]
    assert json.loads(json.dumps(found)) == found


WRONG: dict[str, dict[str, Any]] = {
    "differences": {"checks": [replace(CHECK, differences=["t: 1 rows missing"])]},
    "checkpoints that did not settle": {"checks": [replace(CHECK, settled=None)]},
    "tables not active at checkpoints": {"checks": [replace(CHECK, inactive=["t is ERROR"])]},
    "buffered rows left at checkpoints": {"checks": [CHECK, replace(CHECK, buffer_rows=1)]},
    "snapshots that made no sense": {"wrong_snapshots": [(1.0, "the balances add up to zero")]},
    "statements failed because of Headrace": {"failures": [Failure(1, 0, "INSERT", "42501", "no")]},
    "statements that waited over 1 s for Headrace": {
        "waits": [Wait(1, 1.2, "soak ddl", "ALTER", "LOCK")]
    },
    "exits of the daemon by itself": {"exits": [Exit(1, 70, None)]},
    "processes left behind": {"left_behind": [1]},
    "faults or answers to them that failed": {"failed": ["truncate"]},
}


@pytest.mark.parametrize("name", WRONG)
def test_whatever_goes_wrong_breaks_one_bound(name: str) -> None:
    found = result(**WRONG[name])
    assert not found["ok"]
    assert [one["name"] for one in found["bounds"] if not one["kept"]] == [name]
    assert lines(found)[-1].endswith("NOT OK")


def test_the_picture_is_drawn_of_what_was_measured() -> None:
    drawn = ElementTree.fromstring(chart(result()))
    tag = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{tag}polyline")) >= 10
    assert [one.text for one in drawn.iter(f"{tag}title")] == ["kill_daemon"]


def test_the_report_names_what_went_wrong() -> None:
    assert lines(result())[-1].endswith("; OK")
    check = replace(CHECK, differences=["totals: 1 rows missing, 0 surplus, of 3"])
    assert "  totals: 1 rows missing, 0 surplus, of 3" in lines(result(checks=[check]))


def test_options() -> None:
    given = options(["HOURS=2", "MODE=wal", "SEED=7", "SKIP=kill_jvm"])
    assert (given.seconds, given.mode, given.seed) == (7200, "wal", 7)
    assert "kill_jvm" not in given.kinds(KINDS)
    assert Options(only=frozenset({"truncate"})).kinds(KINDS) == ("truncate",)
    for wrong in ("MODE=none", "HOURS=0", "NAME=1", "WRITERS=3"):
        with pytest.raises(SystemExit):
            options([wrong])
    with pytest.raises(SystemExit):
        Options(only=frozenset({"nothing"})).kinds(KINDS)


def test_an_exit_that_nobody_caused_is_unexpected() -> None:
    windows = [Window("restart_server", 10, 12)]
    fine = [Exit(1, -9, "killed"), Exit(2, 0, "stopped")]
    wrong = [Exit(1, 1, None), Exit(2, 70, "stopped"), Exit(3, -9, "did not stop")]
    assert unexpected([*fine, *wrong], windows) == wrong


# When a daemon was started and when it ended, its exit code, whether it had served, and whether a
# server that is away from 10 to 12 s explains the end.
ENDS_BY_ITSELF: dict[str, tuple[float, float, int, bool, bool]] = {
    "the server is away": (10.5, 11, 5, False, True),
    "the server goes away under a start": (8, 11, 4, False, True),
    "a slow start ends after the server is back": (11, 25, 5, False, True),
    "the server was back before": (13, 14, 5, False, False),
    "the server was still there": (8, 9, 4, False, False),
    "a bug": (10.5, 11, 70, False, False),
    "a wrong request": (10.5, 11, 2, False, False),
    "a daemon that has served connects again": (8, 11, 5, True, False),
}


@pytest.mark.parametrize("case", ENDS_BY_ITSELF)
@pytest.mark.parametrize("cause", [None, "stopped", "stopped at once", "killed"])
def test_a_server_that_is_away_explains_the_end_of_a_start(case: str, cause: str | None) -> None:
    started, at, code, serving, explained = ENDS_BY_ITSELF[case]
    one = Exit(at, code, cause, started, serving)
    assert unexpected([one], [Window("crash_server", 10, 12)]) == ([] if explained else [one])


def test_a_process_without_handlers_ends_by_the_signal() -> None:
    started = Exit(1, -15, "stopped at once", serving=False)
    wrong = [
        Exit(1, -15, "stopped", serving=False),
        Exit(1, -15, "stopped at once", serving=True),
        Exit(1, -15, None, serving=False),
    ]
    assert unexpected([started, *wrong], []) == wrong
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        assert catches(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not catches(os.getpid(), signal.SIGUSR2)


def test_an_exit_that_nobody_caused_is_reported_with_its_last_words() -> None:
    found = lines(result(exits=[Exit(7, 70, None, 3, False, "error: a bug")], log_end=["the end"]))
    where = found.index(
        "exit code 70 of the daemon at 7 s, started at 3 s, not yet serving, by itself"
    )
    assert found[where + 1 : where + 4] == [
        "  error: a bug",
        "end of the daemon's log:",
        "  the end",
    ]
