"""Whoever listens hears that a source is captured in another way, once it is."""

from __future__ import annotations

import json

import psycopg
import pytest

from headrace.catalog.alert import ALERTS, alert_source
from headrace.catalog.transition_notice import (
    LARGEST,
    TRANSITIONS,
    announce_transition,
    notice,
)


def test_a_reason_that_is_too_long_is_left_out() -> None:
    least = len(notice("public.t", "WAL", "TRIGGER", ""))
    fits = "x" * (LARGEST - least)
    assert json.loads(notice("public.t", "WAL", "TRIGGER", fits))["reason"] == fits
    payload = json.loads(notice("public.t", "WAL", "TRIGGER", fits + "x"))
    assert payload == {
        "source": "public.t",
        "from": "WAL",
        "to": "TRIGGER",
        "slot": None,
        "reason": None,
    }
    long = notice("é" * 63 + "." + "é" * 63, "WAL", "TRIGGER", "é" * 8000)
    assert len(long) <= LARGEST


@pytest.mark.postgres
def test_listeners_hear_of_what_was_committed(dsn: str) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as listener,
        psycopg.connect(dsn) as writing,
    ):
        listener.execute(f"LISTEN {TRANSITIONS}; LISTEN {ALERTS}")
        announce_transition(writing, "public.t", "TRIGGER", "TRANSITIONING", None)
        writing.rollback()
        reason = "the slot was dropped"
        announce_transition(writing, "public.t", "WAL", "TRIGGER", reason, "headrace_1f2e3d4c")
        alert_source(writing, ("public", "t"), "fell-back", reason)
        writing.commit()
        heard = [
            (one.channel, json.loads(one.payload))
            for one in listener.notifies(timeout=30, stop_after=2)
        ]
    assert heard == [
        (
            "headrace_cdc_transition",
            {
                "source": "public.t",
                "from": "WAL",
                "to": "TRIGGER",
                "slot": "headrace_1f2e3d4c",
                "reason": "the slot was dropped",
            },
        ),
        (
            "headrace_alert",
            {
                "about": "source",
                "name": "public.t",
                "level": "warning",
                "code": "fell-back",
                "message": "the slot was dropped",
            },
        ),
    ]
