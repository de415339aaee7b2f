"""How a source shall be captured: what the stream tables that read it request, else the setting.

`trigger` is by triggers, `auto` from the WAL where that is possible and else by triggers, `wal`
from the WAL: a stream table over a source for which that is not possible is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, cast

from headrace.catalog import State
from headrace.catalog.records import Source, StreamTable
from headrace.errors import UserError
from headrace.ingest import append_only
from headrace.settings import Settings

RequestedMode = Literal["trigger", "auto", "wal"]
OPTION = "cdc_mode"

# Options of stream tables that are requests to the sources that these read.
REQUESTS = (OPTION, append_only.OPTION)

# The most careful first.
MODES: tuple[RequestedMode, ...] = ("trigger", "auto", "wal")


def requested_mode_of(state: State, settings: Settings, source: Source) -> RequestedMode:
    """Return the mode that a source shall have: of several requests the most careful one."""
    requests = {_asked(reader) for reader in state.readers(source.relation)} - {None}
    return next((mode for mode in MODES if mode in requests), settings.cdc_mode)


def require_agreement(state: State) -> None:
    """Raise `invalid-option` if stream tables request different things of a shared source."""
    for source in state.sources:
        readers = state.readers(source.relation)
        _agree(state, source, readers, OPTION, "ask for different modes of")
        _agree(state, source, readers, append_only.OPTION, f"differ in {append_only.OPTION} of")


def _agree(
    state: State, source: Source, readers: Iterable[StreamTable], option: str, differ: str
) -> None:
    requesting = [reader for reader in readers if reader.options.get(option) is not None]
    for first, second in pairwise(requesting):
        first_value, second_value = first.options[option], second.options[option]
        if first_value != second_value:
            raise UserError(
                "invalid-option",
                f"{_named(first)} and {_named(second)} {differ}"
                f" {state.called(source)}: {_shown(first_value)} and {_shown(second_value)}",
                detail="A source is captured once for all that read it.",
                hint=f"Give both the same {option}, or one of them none.",
            )


def _shown(value: object) -> str:
    return str(value).lower()


def _asked(table: StreamTable) -> RequestedMode | None:
    return cast("RequestedMode | None", table.options.get(OPTION))


def _named(table: StreamTable) -> str:
    return f"{table.schema}.{table.name}"
