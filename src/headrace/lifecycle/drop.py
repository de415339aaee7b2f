"""Dropping a stream table: its served table, its records, its logs, and sources only it read."""

from __future__ import annotations

from headrace.catalog import Change, Transaction
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.graph import downstream
from headrace.lifecycle.sources import remove_idle_sources
from headrace.publish.served import drop_served
from headrace.refresh.refresh import require_table
from headrace.steps import DropTables


def drop(engine: Engine, schema: str, name: str, *, cascade: bool = False) -> None:
    """Remove the stream table, and with `cascade` all that read it; otherwise they keep it.

    Views of users on a served table are named and keep it in any case.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        readers = downstream(state.stream_tables, table.relation)
        if readers and not cascade:
            names = ", ".join(f"{reader.schema}.{reader.name}" for reader in readers)
            raise UserError(
                "has-dependents",
                f"other stream tables read {schema}.{name}",
                detail=f"They are {names}.",
                hint="Drop them first, or drop with cascade.",
            )
        going = (*reversed(readers), table)

        def drop_all(transaction: Transaction) -> None:
            for one in going:
                drop_served(transaction, one)

        with engine.step(DropTables(tuple(one.relation for one in going))):
            engine.catalog.commit(Change(remove=going), fence=lease.fence, apply=drop_all)
        remove_idle_sources(engine, lease.fence)
