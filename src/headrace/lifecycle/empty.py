"""Stream tables that are created without rows: recorded and served, for a refresh to fill them.

Nothing is captured, copied or computed for them. Their logs are made first, and belong to nobody
until the transaction that records and serves the tables: a crash before it leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.catalog import Record, Transaction
from headrace.catalog.records import StreamTable
from headrace.engine import Engine
from headrace.lifecycle.logs import create_logs
from headrace.lifecycle.order import order_of_stage
from headrace.lifecycle.planned_table import PlannedTable
from headrace.publish.replace import replace_empty
from headrace.publish.served import create_served
from headrace.relations.definition import relation_of
from headrace.store import Arrangement, Pin

NOT_FILLED = "created without rows; its first refresh fills it"


@dataclass(frozen=True)
class EmptyTables:
    """Tables as they are recorded without rows, each with the one whose place it takes."""

    tables: tuple[tuple[StreamTable | None, StreamTable], ...]

    @staticmethod
    def of(makings: Iterable[PlannedTable]) -> EmptyTables:
        return EmptyTables(tuple((one.old, _recorded(one)) for one in makings if one.empty))

    @property
    def put(self) -> tuple[Record, ...]:
        return tuple(new for _, new in self.tables)

    @property
    def replaced(self) -> tuple[StreamTable, ...]:
        return tuple(old for old, _ in self.tables if old is not None)

    def serve(self, transaction: Transaction) -> None:
        """Make the served tables, with their columns and without rows."""
        for old, new in self.tables:
            if old is None:
                create_served(transaction, new)
            else:
                replace_empty(transaction, old, new)


def begin_empty(engine: Engine, makings: Iterable[PlannedTable], fence: int) -> EmptyTables:
    """Make empty logs, so that readers in Spark find the tables; the tables to be recorded."""
    empty = tuple(making for making in makings if making.empty)
    if empty:
        finals = ((one.definition.final, Pin(0, 0)) for one in empty)
        relations = [(stage, relation_of(stage, pin)) for stage, pin in finals]
        logs = {one: Arrangement(order_of_stage(stage, one)) for stage, one in relations}
        create_logs(engine, logs, fence)
    return EmptyTables.of(empty)


def _recorded(making: PlannedTable) -> StreamTable:
    """The table with the stream tables that it reads; sources are looked up when it is filled."""
    sources = frozenset(source.relation for source in making.sources)
    table = making.table
    return replace(
        table,
        inputs=tuple(one for one in table.inputs if one not in sources),
        names={one: named for one, named in table.names.items() if one not in sources},
        edges={one: words for one, words in table.edges.items() if one not in sources},
        views=(),
        reason=NOT_FILLED,
        awaits_rebuild=True,
    )
