"""Alerts as a listener hears them."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from headrace.catalog.alert import ALERTS, KINDS

FIELDS = ["about", "name", "level", "code", "message"]
Crossing = tuple[str, str, str, str]
"""About, name, code and level."""


def listen(connection: psycopg.Connection[Any]) -> None:
    connection.execute(f"LISTEN {ALERTS}")


def heard_so_far(connection: psycopg.Connection[Any]) -> list[dict[str, str]]:
    """All alerts that were committed by now, in order."""
    # The server sends notifications before the answer to a query.
    connection.execute("SELECT 1")
    return [_read(one) for one in connection.notifies(timeout=0) if one.channel == ALERTS]


def crossings_so_far(connection: psycopg.Connection[Any]) -> list[Crossing]:
    return [(a["about"], a["name"], a["code"], a["level"]) for a in heard_so_far(connection)]


def _read(heard: psycopg.Notify) -> dict[str, str]:
    said: dict[str, str] = json.loads(heard.payload)
    assert list(said) == FIELDS
    assert (said["about"], said["code"]) in KINDS
    return said
