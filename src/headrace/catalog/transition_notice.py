"""Notices to listeners that a source is captured in another mode now, and why."""

from __future__ import annotations

import json
import logging

from headrace.catalog import Transaction

TRANSITIONS = "headrace_cdc_transition"
# PostgreSQL takes less than 8000 bytes. JSON in ASCII has as many bytes in every encoding.
LARGEST = 7999

logger = logging.getLogger(__name__)


def announce_transition(
    transaction: Transaction,
    source: str,
    before: str,
    after: str,
    reason: str | None,
    slot: str | None = None,
) -> None:
    """Notify the sessions that LISTEN on the channel, if the transaction is committed.

    `before` and `after` are capture modes, `slot` is the replication slot of the database. A
    source that stays with triggers, because it could not switch to the WAL, is announced from
    TRANSITIONING to TRIGGER.
    """
    payload = notice(source, before, after, reason, slot)
    transaction.execute("SELECT pg_notify(%s, %s)", (TRANSITIONS, payload))
    logger.info("%s: %s -> %s: %s", source, before, after, reason or "as requested")


def notice(
    source: str, before: str, after: str, reason: str | None, slot: str | None = None
) -> str:
    """Return the payload for listeners: JSON; a reason that is too long is left out."""
    fields = {"source": source, "from": before, "to": after, "slot": slot, "reason": reason}
    text = json.dumps(fields)
    return text if len(text) <= LARGEST else json.dumps({**fields, "reason": None})
