"""Telling a person, through PostgreSQL, that a stream table has stopped."""

from __future__ import annotations

import json
import logging

from headrace.catalog import Transaction
from headrace.catalog.records import StreamTable

# The channel that tells of what a person has to look at.
ALERTS = "headrace_alert"
# PostgreSQL takes no longer ones.
MOST_BYTES = 8000

logger = logging.getLogger(__name__)


def alert(transaction: Transaction, table: StreamTable) -> None:
    """Tell that a table was suspended, and why, if the transaction is committed."""
    name = f"{table.schema}.{table.name}"
    said = json.dumps({"table": name, "reason": table.reason}, ensure_ascii=False)
    if len(said.encode()) >= MOST_BYTES:
        said = json.dumps({"table": name, "reason": None}, ensure_ascii=False)
    transaction.execute("SELECT pg_notify(%s, %s)", (ALERTS, said))
    logger.error("%s: %s", name, table.reason)
