"""Levels that rise and fall: each crossing is one alert, and swinging values are none."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from headrace.capture.wal.slot_probe import LEVELS, Level
from headrace.catalog.alert import Alert
from headrace.schedule.crossings import HOLD, Sent, Subject, crossings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOOK = timedelta(seconds=5)
SLOT: Subject = ("slot", "headrace_1", "slot-lag")
BUFFER: Subject = ("source", "public.t", "buffer-size")

levels = st.sampled_from(LEVELS)


def walked(walk: Iterable[Level | None], step: timedelta) -> list[Alert]:
    """The alerts of one subject; None is a measurement without it."""
    sent: dict[Subject, Sent] = {}
    heard: list[Alert] = []
    for n, level in enumerate(walk):
        measured = {} if level is None else {SLOT: (level, f"look {n}")}
        sent, alerts = crossings(sent, measured, NOON + n * step)
        heard += alerts
    return heard


def sent_levels(alerts: Iterable[Alert]) -> list[Level]:
    return [one.level for one in alerts]


@given(st.lists(levels, max_size=40))
def test_slow_walks_are_sent_step_by_step(walk: list[Level]) -> None:
    """Where every level lasts for longer than the hold, each crossing is sent exactly once."""
    lasting = [level for level in walk for _ in range(2)]
    changes = [
        level for before, level in zip(["fine", *walk], walk, strict=False) if before != level
    ]
    assert sent_levels(walked(lasting, HOLD)) == changes


@given(st.lists(levels, max_size=200), st.integers(1, 90))
def test_any_walk(walk: list[Level], seconds: int) -> None:
    """Two alerts in a row differ, rises are sent at once, falls only after the hold."""
    step = timedelta(seconds=seconds)
    heard = walked(walk, step)
    levels_sent = ["fine", *sent_levels(heard)]
    assert all(one != other for one, other in itertools.pairwise(levels_sent))
    known: Level = "fine"
    since = 0
    messages = {alert.message: alert.level for alert in heard}
    for n, level in enumerate(walk):
        sent = messages.get(f"look {n}")
        if LEVELS.index(level) > LEVELS.index(known):
            assert sent == level
        elif sent is not None:
            assert LEVELS.index(sent) < LEVELS.index(known)
            assert (n - since) * step >= HOLD
            assert sent == max(walk[since : n + 1], key=LEVELS.index)
        if LEVELS.index(level) >= LEVELS.index(known) or sent is not None:
            since = n + 1
        known = sent or known


@given(st.lists(levels, max_size=100))
def test_in_the_end_it_is_what_was_measured(walk: list[Level]) -> None:
    for last in LEVELS:
        long = [*walk, *[last] * 40]
        levels_sent = ["fine", *sent_levels(walked(long, LOOK))]
        assert levels_sent[-1] == last


def test_a_value_that_swings_is_one_alert() -> None:
    swinging: list[Level] = ["warning", "fine"] * 500
    assert sent_levels(walked(swinging, LOOK)) == ["warning"]
    both: list[Level] = ["critical", "warning", "fine"] * 500
    assert sent_levels(walked(both, LOOK)) == ["critical"]


def test_what_is_gone_is_fine() -> None:
    assert sent_levels(walked(["critical", *[None] * 20], LOOK)) == ["critical", "fine"]


def test_subjects_do_not_mix() -> None:
    sent, first = crossings({}, {SLOT: ("warning", ""), BUFFER: ("fine", "")}, NOON)
    assert [(one.about, one.name, one.code) for one in first] == [SLOT]
    sent, second = crossings(sent, {SLOT: ("warning", ""), BUFFER: ("critical", "")}, NOON)
    assert [(one.about, one.name, one.code) for one in second] == [BUFFER]
    assert sent.keys() == {SLOT, BUFFER}
