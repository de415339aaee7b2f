"""Streaming the WAL of a database in a long-lived process."""

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
    """Have the WAL streamed if any source is read from it; to be called after every cut.

    Earlier changes are taken in by then, in larger batches than a stream has. `heard` is called in
    another thread when transactions arrive. A source that switched to the WAL with the cut gets a
    stream that begins after it was published.
    """
    database_record = state.database(number)
    by_wal = frozenset(
        source.followed.entry
        for source in state.sources
        if source.database == number
        and source.mode is CaptureMode.WAL
        and source.followed is not None
    )
    if database_record.following is None or not by_wal:
        return None
    ceiling = slot_ceiling(engine.settings(state)).critical
    database = engine.source_database(database_record)
    return engine.slot_readers.stream(
        database, database_record.following.slot, ceiling, heard, by_wal
    )
