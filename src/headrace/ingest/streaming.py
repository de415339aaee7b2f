"""Having the log of a database streamed, by a process that lives long."""

from __future__ import annotations

from collections.abc import Callable

from headrace.capture.wal.stream import ignore_changes
from headrace.capture.wal.streaming_reader import StreamingReader
from headrace.catalog import State
from headrace.catalog.records import CaptureMode
from headrace.engine import Engine
from headrace.ingest.from_wal import slot_ceiling


def keep_streaming(
    engine: Engine, state: State, number: int, heard: Callable[[], None] = ignore_changes
) -> StreamingReader | None:
    """Have the log streamed if any source is read from it; to be called after every cut.

    What there was before is taken in by then, in larger bites than a stream has. `heard` is called
    in another thread when transactions arrive. A source that went to the log with the cut gets a
    stream that begins after it was published.
    """
    known = state.database(number)
    by_log = frozenset(
        source.followed.entry
        for source in state.sources
        if source.database == number
        and source.mode is CaptureMode.WAL
        and source.followed is not None
    )
    if known.following is None or not by_log:
        return None
    ceiling = slot_ceiling(engine.settings(state)).critical
    database = engine.source_database(known)
    return engine.slot_readers.stream(database, known.following.slot, ceiling, heard, by_log)
