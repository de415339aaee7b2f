"""Changing what is recorded of a stream table, and the name it is served under."""

from __future__ import annotations

from headrace.catalog import Change, Transaction
from headrace.catalog.records import RefreshMode, StreamTable
from headrace.engine import Engine
from headrace.graph.cycles import cycles
from headrace.lifecycle.circle import full_in_cycle
from headrace.publish.replace import rename
from headrace.steps import AlterTable


def change(engine: Engine, old: StreamTable, new: StreamTable, fence: int) -> None:
    """Record the table as `new`, and rename what is served, in one transaction.

    One that is in a cycle cannot be FULL.
    """
    if new == old:
        return
    if new.refresh_mode is RefreshMode.FULL and old.refresh_mode is not RefreshMode.FULL:
        _require_alone(engine, old)

    def apply(transaction: Transaction) -> None:
        rename(transaction, old, new)

    with engine.step(AlterTable(old.relation)):
        engine.catalog.commit(Change(put=(new,)), fence=fence, apply=apply)


def _require_alone(engine: Engine, table: StreamTable) -> None:
    if table.relation in cycles(engine.catalog.state().stream_tables):
        raise full_in_cycle((table.schema, table.name))
