"""Notifications of a publish, sent by its own transaction: what they announce is visible."""

from __future__ import annotations

import json
from collections.abc import Sequence

from headrace.catalog import Transaction
from headrace.catalog.records import StreamTable

CHANNEL = "headrace_published"
# PostgreSQL takes less than 8000 bytes. JSON in ASCII has as many in every encoding.
LARGEST = 7999


def announce(transaction: Transaction, tables: Sequence[StreamTable]) -> None:
    """Notify those that LISTEN on the channel, once for all of the tables."""
    if not tables:
        return
    epoch = max(table.epoch for table in tables)
    names = [f"{table.schema}.{table.name}" for table in tables]
    transaction.execute("SELECT pg_notify(%s, %s)", (CHANNEL, announcement(epoch, names)))


def announcement(epoch: int, names: Sequence[str]) -> str:
    """Return the epoch and the tables that were published, or their count if that is too long."""
    text = json.dumps({"epoch": epoch, "tables": list(names)})
    if len(text) <= LARGEST:
        return text
    return json.dumps({"epoch": epoch, "count": len(names)})
