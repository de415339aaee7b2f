"""All stream tables at one moment, for readers in Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headrace.boundary.entry_points import entry_points
from headrace.catalog import State
from headrace.catalog.records import StreamTable
from headrace.engine import Engine
from headrace.errors import UserError
from headrace.lifecycle.names import parse_name
from headrace.observe.table_status import TableStatus
from headrace.refresh.epochs import newest_cut
from headrace.refresh.refresh import require_table
from headrace.relations.dataframe import changed_frame, published_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Changes(NamedTuple):
    """How a stream table changed: rows with `_weight`, and the epoch that they reach.

    A row with weight −1 went, one with 1 came; a row that is there twice may have ±2.
    """

    frame: DataFrame
    epoch: int


@entry_points
class PinnedTables:
    """Stream tables as they were published in one state of the catalog; refreshes since are unseen.

    With an epoch, each is as it was last published up to that epoch.
    """

    def __init__(
        self,
        engine: Engine,
        state: State,
        epoch: int | None,
        statuses: Callable[[State], tuple[TableStatus, ...]],
    ) -> None:
        newest = max((table.epoch for table in state.stream_tables), default=0)
        if epoch is not None and not 0 < epoch <= max(newest, newest_cut(state)):
            raise UserError(
                "invalid-option",
                f"there is no epoch {epoch}",
                hint=f"The newest that was published is {newest}.",
            )
        self.epoch = newest if epoch is None else epoch
        self._engine = engine
        self._state = state
        self._upto = epoch
        self._statuses = statuses

    def table(self, name: str) -> DataFrame:
        """Return a stream table at an epoch; raise `epoch-expired` if it is not stored any more."""
        table = self._table(name)
        return published_frame(self._engine, self._state, table, self._upto)

    def changes(self, name: str, after: int = 0) -> Changes:
        """Return the changes of a stream table after an epoch; after 0 they are all of its rows."""
        table = self._table(name)
        reached = table.epoch if self._upto is None else min(self._upto, table.epoch)
        if not 0 <= after <= reached:
            raise UserError(
                "invalid-option",
                f"{table.schema}.{table.name} has not reached epoch {after}",
                detail=f"It is at epoch {reached}.",
                hint="Ask with the epoch that the last answer reached, or with 0.",
            )
        frame = changed_frame(self._engine, self._state, table, after, self._upto)
        return Changes(frame, reached)

    def status(self) -> tuple[TableStatus, ...]:
        """Return the status of every stream table in the state of the catalog that is pinned."""
        return self._statuses(self._state)

    def _table(self, name: str) -> StreamTable:
        schema_and_name = parse_name(name, self._engine.database.search_path[0])
        return require_table(self._state, *schema_and_name)
