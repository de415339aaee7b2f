"""Changing what is recorded of a stream table, and the name it is served under."""

from __future__ import annotations

from headrace.catalog import Change, Transaction
from headrace.catalog.records import StreamTable
from headrace.engine import Engine
from headrace.publish.replace import rename
from headrace.steps import AlterTable


def change(engine: Engine, old: StreamTable, new: StreamTable, fence: int) -> None:
    """Record the table as `new`, and rename what is served, in one transaction."""
    if new == old:
        return

    def apply(transaction: Transaction) -> None:
        rename(transaction, old, new)

    with engine.step(AlterTable(old.relation)):
        engine.catalog.commit(Change(put=(new,)), fence=fence, apply=apply)
