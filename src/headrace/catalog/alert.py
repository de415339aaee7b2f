"""Alerts for people, sent on one channel of the home database, in one format.

Any role of the database may listen, so a payload names its subject and where to look, and never
quotes a row or a reason that may quote one.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from headrace.capture.wal.slot_probe import Level
from headrace.catalog.catalog import Transaction

ALERTS = "headrace_alert"
# PostgreSQL takes less than 8000 bytes. JSON in ASCII has as many bytes in every encoding.
LARGEST = 7999

About = Literal["table", "source", "slot", "database", "disk", "daemon"]

# Every kind of alert. A condition is raised, and cleared once when it has ended; an event is sent
# and has no end.
CONDITIONS: frozenset[tuple[About, str]] = frozenset(
    {
        ("table", "suspended"),
        ("table", "error"),
        ("table", "late"),
        ("source", "suspended"),
        ("source", "error"),
        ("source", "buffer-size"),
        ("slot", "slot-lag"),
        ("database", "ingest-failing"),
        ("disk", "disk-space"),
    }
)
EVENTS: frozenset[tuple[About, str]] = frozenset(
    {
        ("source", "fell-back"),
        ("source", "buffer-full"),
        ("source", "not-append-only"),
        ("daemon", "watching"),
    }
)
KINDS = CONDITIONS | EVENTS

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")

SEVERITIES = {"fine": logging.INFO, "warning": logging.WARNING, "critical": logging.ERROR}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Alert:
    """One message. `about`, `name` and `code` identify a condition, at any level.

    `reason` goes to the log file only: it may quote rows.
    """

    about: About
    name: str
    level: Level
    code: str
    message: str
    reason: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if (self.about, self.code) not in KINDS:
            raise ValueError(f"there is no alert {self.code!r} about a {self.about}")

    def payload(self) -> str:
        """Return the alert as JSON, without the message if the payload would be too long."""
        fields = {
            "about": self.about,
            "name": self.name,
            "level": self.level,
            "code": self.code,
            "message": self.message,
        }
        text = json.dumps(fields)
        return text if len(text) <= LARGEST else json.dumps({**fields, "message": None})


def qualified(*parts: str) -> str:
    """Return the name that an alert has for its parts, from which they can be parsed.

    As in SQL: a part is in double quotes, those in it doubled, unless it needs none.
    """
    return ".".join(
        part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"' for part in parts
    )


def notify(transaction: Transaction, alerts: Iterable[Alert]) -> None:
    """Send alerts to those that LISTEN, if the transaction is committed."""
    for alert in alerts:
        transaction.execute("SELECT pg_notify(%s, %s)", (ALERTS, alert.payload()))


def log(alerts: Iterable[Alert]) -> None:
    """Write alerts that were sent to the log file, with their reasons."""
    for alert in alerts:
        logger.log(
            SEVERITIES[alert.level],
            "%s: %s",
            alert.name,
            alert.reason or alert.message,
            extra={"about": alert.about, "code": alert.code},
        )


def alert_source(
    transaction: Transaction, source: tuple[str, ...], code: str, message: str
) -> None:
    """Send an alert about the capture of a source, if the transaction is committed.

    `source` are the parts of its name.
    """
    alerts = (Alert("source", qualified(*source), "warning", code, message),)
    notify(transaction, alerts)
    log(alerts)
