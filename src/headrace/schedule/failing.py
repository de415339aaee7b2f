"""Stream tables that fail again and again are stopped, and somebody is told."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from headrace.catalog import Change, State
from headrace.catalog.records import Status, StreamTable
from headrace.engine import Engine
from headrace.publish.alert import alert
from headrace.steps import AlterTable


def stop_failing(engine: Engine, tables: Iterable[StreamTable], why: str, fence: int) -> None:
    """Suspend tables for good, with the reason, and tell it in the same transaction."""
    for table in tables:
        with engine.step(AlterTable(table.relation)), engine.changing(State()) as current:
            found = current.origin(table.relation)
            if isinstance(found, StreamTable) and found.status is not Status.SUSPENDED:
                reason = f"suspended after {found.failures} failures in a row: {why}"
                stopped = found.suspended(reason)
                change = Change(put=(stopped,))
                engine.catalog.commit(change, fence=fence, apply=partial(alert, table=stopped))
