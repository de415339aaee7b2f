"""What was given about a stream table and has no effect on it, said in sentences. Pure."""

from __future__ import annotations

from headrace.catalog import State
from headrace.catalog.records import Source, StreamTable

# Options that say how the sources of a table are captured.
OF_SOURCES = ("cdc_mode", "append_only")


def option_notices(state: State, table: StreamTable) -> tuple[str, ...]:
    """The options of a table that change nothing, each with the reason.

    Which sources a table reads that was never filled is not known yet.
    """
    read = (state.origin(name) for name in table.inputs)
    has_sources = table.is_uninitialized or any(isinstance(one, Source) for one in read)
    if has_sources:
        return ()
    return tuple(
        f"{option} has no effect: {table.schema}.{table.name} reads only stream tables;"
        " give it to those that read the source"
        for option in OF_SOURCES
        if option in table.options
    )
