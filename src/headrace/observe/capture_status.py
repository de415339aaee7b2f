"""How the sources below a stream table are captured, from the catalog alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, Status, StreamTable

Decoder: TypeAlias = Literal["active", "stopped", "error"]


@dataclass(frozen=True)
class SourceCapture:
    """A source and its mode of capture; in WAL mode or in transition to it, its slot and decoder.

    The decoder is `active` while a daemon runs, `stopped` while none does, and in `error` while
    changes of the source are not taken in.
    """

    source: str
    mode: str
    slot: str | None = None
    decoder: Decoder | None = None


def captures(
    state: State, tables: Iterable[StreamTable], *, serving: bool
) -> Mapping[str, tuple[SourceCapture, ...]]:
    """Return the sources that each stream table rests on, in the order of names, by relation."""
    capture_by_relation = {
        source.relation: _capture(state, source, serving=serving) for source in state.sources
    }
    captures_by_table = {}
    for table in tables:
        below = (
            capture_by_relation[name]
            for name in _inputs_below(state, table)
            if name in capture_by_relation
        )
        captures_by_table[table.relation] = tuple(sorted(below, key=lambda capture: capture.source))
    return captures_by_table


def is_decoded(state: State) -> bool:
    """Return whether the changes of any source come from the WAL, or soon will."""
    return any(source.mode is not CaptureMode.TRIGGER for source in state.sources)


def _inputs_below(state: State, table: StreamTable) -> set[str]:
    """Return the relations that a table reads, directly or through stream tables."""
    relations: set[str] = set()
    left = [*table.inputs]
    while left:
        name = left.pop()
        if name not in relations:
            relations.add(name)
            origin = state.origin(name)
            left += origin.inputs if isinstance(origin, StreamTable) else ()
    return relations


def _capture(state: State, source: Source, *, serving: bool) -> SourceCapture:
    name, mode = state.called(source), source.mode.value
    if source.mode is CaptureMode.TRIGGER:
        return SourceCapture(name, mode)
    database = state.database(source.database)
    decoder: Decoder = "active" if serving else "stopped"
    if database.failing_since is not None or source.status in (Status.SUSPENDED, Status.ERROR):
        decoder = "error"
    slot = None if database.following is None else database.following.slot
    return SourceCapture(name, mode, slot, decoder)
