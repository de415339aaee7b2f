"""Every publish notifies its listeners, once, when it is visible."""

from __future__ import annotations

import json
from dataclasses import replace

import psycopg
import pytest

from headrace.publish.announce import CHANNEL, LARGEST, announce, announcement
from tests.observe.states import table

A, B = table("a", {"s": 4}, 4), table("b", {"s": 4}, 4)


def test_epoch_and_names() -> None:
    assert json.loads(announcement(12, ["public.a", 'x."é"'])) == {
        "epoch": 12,
        "tables": ["public.a", 'x."é"'],
    }


def test_names_that_are_too_long_are_counted() -> None:
    # In quotes, each name but the first with a comma and a blank before it.
    least = len(announcement(1, [""]))
    fits = ["x" * (LARGEST - least)]
    assert len(announcement(1, fits)) == LARGEST
    assert json.loads(announcement(1, fits))["tables"] == fits
    assert json.loads(announcement(1, [fits[0] + "x"])) == {"epoch": 1, "count": 1}
    assert json.loads(announcement(9, ["ü" * 63] * 400)) == {"epoch": 9, "count": 400}


@pytest.mark.postgres
def test_a_listener_hears_of_what_was_committed(dsn: str) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as listener,
        psycopg.connect(dsn) as publishing,
    ):
        listener.execute(f"LISTEN {CHANNEL}")
        announce(publishing, (A,))
        publishing.rollback()
        announce(publishing, ())
        publishing.commit()
        announce(publishing, (A, B))
        publishing.commit()
        many = [replace(A, name="ü" * 63) for _ in range(400)]
        announce(publishing, many)
        publishing.commit()
        heard = [json.loads(one.payload) for one in listener.notifies(timeout=30, stop_after=2)]
    assert heard == [
        {"epoch": 4, "tables": ["public.a", "public.b"]},
        {"epoch": 4, "count": 400},
    ]
