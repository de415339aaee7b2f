"""How far a stream table has to come to show a cut: a goal that does not move on. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import State
from headrace.catalog.records import Source, StreamTable, is_stale, taken_in
from headrace.graph import upstream
from headrace.graph.components import cycles


class Goal:
    """All that a cut has, and all that stream tables make of it.

    `epochs` says of each source up to where it has to be taken in. A stream table that was seen to
    have all of that is to be taken in as far as it was then, and so on up to the one waited for;
    what comes later is not waited for, however much it is.
    """

    def __init__(self, epochs: Mapping[str, int]) -> None:
        self._epochs = dict(epochs)

    def lacking(self, state: State, table: StreamTable) -> tuple[StreamTable, ...]:
        """The table and those that it reads as far as they have not come; none: it is reached."""
        known = cycles(state.stream_tables)
        lacking = []
        for one in upstream(state.stream_tables, table):
            others = known.get(one.relation, frozenset({one.relation}))
            outside = [name for name in one.inputs if name not in others]
            for name in outside:
                if isinstance(state.origin(name), Source):
                    # A source that was not known was copied since, in a later cut.
                    self._epochs.setdefault(name, state.relation(name).pin.epoch)
            if is_stale(one) or one.epoch == 0 or not all(self._has(one, i) for i in outside):
                lacking.append(one)
            else:
                self._epochs.setdefault(one.relation, state.relation(one.relation).changed_at)
        return tuple(lacking)

    def _has(self, table: StreamTable, name: str) -> bool:
        return name in self._epochs and taken_in(table, name) >= self._epochs[name]
