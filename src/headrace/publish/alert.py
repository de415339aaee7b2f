"""Telling a person, through PostgreSQL, that a stream table or a source needs a look."""

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
    """Tell that a table was suspended, if the transaction is committed.

    Any role of the database may listen, and a reason may quote rows: view headrace.status has it,
    for those who may read it.
    """
    name = f"{table.schema}.{table.name}"
    logger.error("%s: %s", name, table.reason)
    _tell(transaction, "table", name, "suspended: see headrace.status")


def alert_source(transaction: Transaction, source: str, reason: str) -> None:
    """Tell what happened to the capture of a source, if the transaction is committed."""
    logger.error("%s: %s", source, reason)
    _tell(transaction, "source", source, reason)


def _tell(transaction: Transaction, kind: str, name: str, reason: str) -> None:
    said = json.dumps({kind: name, "reason": reason}, ensure_ascii=False)
    if len(said.encode()) >= MOST_BYTES:
        said = json.dumps({kind: name, "reason": None}, ensure_ascii=False)
    transaction.execute("SELECT pg_notify(%s, %s)", (ALERTS, said))
