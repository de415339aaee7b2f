"""Keeping the refresh history short, so that it never fills a disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.catalog import State
from headrace.engine import Engine
from headrace.errors import HeadraceError

# Seconds between two looks of one process.
INTERVAL = 600.0

logger = logging.getLogger(__name__)


@dataclass
class LastPruning:
    """When this process last pruned the history, by its monotonic clock."""

    at: float | None = None


def prune_history(engine: Engine, state: State, tables: Iterable[str]) -> None:
    """Remove old lines of these tables, unless that was done a moment ago.

    What was to be done is published already, so a failure is logged and not raised.
    """
    now, last = time.monotonic(), engine.part(LastPruning)
    if last.at is not None and now < last.at + INTERVAL:
        return
    last.at = now
    settings = engine.settings(state)
    before = datetime.now(UTC) - timedelta(seconds=settings.refresh_history_age)
    try:
        engine.catalog.prune_history(tables, before, settings.refresh_history_lines)
    except HeadraceError as error:
        extra = {"code": error.code, "error": error.message}
        logger.warning("the refresh history could not be pruned", extra=extra)
