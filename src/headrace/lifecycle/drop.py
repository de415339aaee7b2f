"""Dropping a stream table: its served table, its records, its logs, and sources only it read."""

from __future__ import annotations

from headrace.catalog import Change
from headrace.engine import Engine
from headrace.lifecycle.sources import remove_idle_sources
from headrace.publish.served import drop_served
from headrace.refresh.refresh import require_table


def drop(engine: Engine, schema: str, name: str) -> None:
    """Remove the stream table; views of users on its served table are named and keep it."""
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        own = tuple(r for r in state.relations if r.id.startswith(table.relation))
        engine.catalog.commit(
            Change(remove=(table, *own)),
            fence=lease.fence,
            apply=lambda transaction: drop_served(transaction, table),
        )
        for relation in own:
            engine.store.drop(relation.id)
        remove_idle_sources(engine, lease.fence)
