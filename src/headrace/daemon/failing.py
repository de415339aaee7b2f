"""Suspension of stream tables that failed too often in a row."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.catalog import Change, State
from headrace.catalog.records import Status, StreamTable
from headrace.engine import Engine
from headrace.engine.steps import AlterTable


def stop_failing(engine: Engine, tables: Iterable[StreamTable], why: str, fence: int) -> None:
    """Suspend tables until they are resumed, with the reason."""
    for table in tables:
        with engine.step(AlterTable(table.relation)), engine.changing(State()) as current:
            current_table = current.origin(table.relation)
            if (
                isinstance(current_table, StreamTable)
                and current_table.status is not Status.SUSPENDED
            ):
                reason = f"suspended after {current_table.failures} failures in a row: {why}"
                engine.catalog.commit(Change(put=(current_table.suspended(reason),)), fence=fence)
