"""Dropping a stream table: its served table, its records, its logs, and sources only it read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.catalog import Change, Transaction
from headrace.catalog.records import StreamTable
from headrace.engine import Engine
from headrace.engine.steps import DropTables
from headrace.errors import UserError
from headrace.graph import downstream
from headrace.graph.components import cycles
from headrace.lifecycle.sources import remove_idle_sources
from headrace.publish.served import drop_served
from headrace.refresh.refresh import require_table


def drop(engine: Engine, schema: str, name: str, *, cascade: bool = False) -> None:
    """Remove the stream table, and with `cascade` all that read it; otherwise they keep it.

    Views of users on a served table are named and keep it in any case.
    """
    with engine.writing() as lease:
        state = engine.catalog.state()
        table = require_table(state, schema, name)
        found = downstream(state.stream_tables, table.relation)
        readers = tuple(one for one in found if one.relation != table.relation)
        if readers and not cascade:
            raise _needed(table, readers, cycles(state.stream_tables))
        going = (*reversed(readers), table)

        def drop_all(transaction: Transaction) -> None:
            for one in going:
                drop_served(transaction, one)

        with engine.step(DropTables(tuple(one.relation for one in going))):
            engine.catalog.commit(Change(remove=going), fence=lease.fence, apply=drop_all)
        remove_idle_sources(engine, lease.fence)


def _needed(
    table: StreamTable, readers: Sequence[StreamTable], known: Mapping[str, frozenset[str]]
) -> UserError:
    """The error of a table that others read; those of its own cycle go only together."""
    own = known.get(table.relation, frozenset())
    members = [reader for reader in readers if reader.relation in own]
    hint = "Drop them first, or drop with cascade."
    if members:
        hint = f"Drop with cascade, or first alter {_listed(members)} so that the cycle opens."
    return UserError(
        "has-dependents",
        f"other stream tables read {table.schema}.{table.name}",
        detail=f"They are {_listed(readers)}."
        + (f" It is in a cycle with {_listed(members)}." if members else ""),
        hint=hint,
    )


def _listed(tables: Sequence[StreamTable]) -> str:
    return ", ".join(f"{one.schema}.{one.name}" for one in tables)
