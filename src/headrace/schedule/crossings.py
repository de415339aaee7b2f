"""Alerts from levels that are measured repeatedly, with hysteresis. Pure.

A level that rises is an alert at once. One that falls is an alert after it has stayed lower for a
while, so that a value which swings around a threshold raises one alert and not hundreds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headrace.capture.wal.slot_probe import LEVELS, Level
from headrace.catalog.alert import About, Alert

# How long a level has to stay lower than the one that was sent before an alert is sent.
HOLD = timedelta(minutes=1)
GONE = "there is nothing of it any more"

Subject = tuple[About, str, str]
"""About, name and code of alerts."""


@dataclass(frozen=True)
class Sent:
    """The level that was sent last. Since `lower_since` it was lower, at worst `worst`."""

    level: Level
    lower_since: datetime | None = None
    worst: Level = "fine"


def crossings(
    sent: Mapping[Subject, Sent], measured: Mapping[Subject, tuple[Level, str]], now: datetime
) -> tuple[dict[Subject, Sent], tuple[Alert, ...]]:
    """Return the levels that are sent after a measurement, and the alerts to send.

    A subject that was sent and is not measured any more is at level fine.
    """
    after: dict[Subject, Sent] = {}
    alerts: list[Alert] = []
    for subject in dict.fromkeys((*sent, *measured)):
        level, message = measured.get(subject, ("fine", GONE))
        before = sent.get(subject, Sent("fine"))
        current = _next(before, level, now)
        if current.level != before.level:
            about, name, code = subject
            alerts.append(Alert(about, name, current.level, code, message))
        if current.level != "fine":
            after[subject] = current
    return after, tuple(alerts)


def _next(sent: Sent, level: Level, now: datetime) -> Sent:
    if LEVELS.index(level) >= LEVELS.index(sent.level):
        return Sent(level)
    if sent.lower_since is None:
        return replace(sent, lower_since=now, worst=level)
    worst = max(sent.worst, level, key=LEVELS.index)
    if now - sent.lower_since < HOLD:
        return replace(sent, worst=worst)
    return Sent(worst)
