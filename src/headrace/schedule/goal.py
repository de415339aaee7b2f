"""The epochs that a stream table has to take in to show a cut: a goal that stays fixed. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import State
from headrace.catalog.records import Source, StreamTable, is_stale, taken_in
from headrace.graph import upstream
from headrace.graph.components import cycles


class Goal:
    """The rows of a cut, and all rows that stream tables derive from them.

    `epochs` gives for each source the epoch up to which it has to be taken in. Once a stream table
    has taken in all of that, its own epoch at that time becomes the goal of its readers, and so on
    up to the table that is waited for. Later changes are not waited for, however many they are.
    """

    def __init__(self, epochs: Mapping[str, int]) -> None:
        self._epochs = dict(epochs)

    def lacking(self, state: State, table: StreamTable) -> tuple[StreamTable, ...]:
        """Return the tables, of this one and those that it reads, that have not reached the goal.

        The goal is reached when there are none.
        """
        cycle_by_relation = cycles(state.stream_tables)
        lacking = []
        for upstream_table in upstream(state.stream_tables, table):
            others = cycle_by_relation.get(
                upstream_table.relation, frozenset({upstream_table.relation})
            )
            outside = [name for name in upstream_table.inputs if name not in others]
            for name in outside:
                if isinstance(state.origin(name), Source):
                    # A source without an epoch was copied since, in a later cut.
                    self._epochs.setdefault(name, state.relation(name).pin.epoch)
            if (
                is_stale(upstream_table)
                or upstream_table.epoch == 0
                or not all(self._has(upstream_table, name) for name in outside)
            ):
                lacking.append(upstream_table)
            else:
                self._epochs.setdefault(
                    upstream_table.relation, state.relation(upstream_table.relation).changed_at
                )
        return tuple(lacking)

    def _has(self, table: StreamTable, name: str) -> bool:
        return name in self._epochs and taken_in(table, name) >= self._epochs[name]
