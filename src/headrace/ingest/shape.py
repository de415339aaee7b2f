"""What became of a captured table's columns: which of them can still be read as they were."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.catalog.records import Source, Status, StreamTable
from headrace.functions.casts import widening
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import Type

WIDER = ", which is wider"
"""How the reason of a table ends that the next refresh rebuilds."""


@dataclass(frozen=True)
class Shape:
    """The difference between a source as it was captured and its table as it is.

    `lost` gives, for each captured column that is not as it was, what happened to it. Columns
    that were added, and columns that were never captured, do not count.
    """

    lost: dict[SourceColumn, str]

    def reason(self, source: Source, column: SourceColumn) -> str:
        return f"column {column.name} of {source.schema}.{source.name} {self.lost[column]}"


def shape_of(source: Source, table: SourceTable) -> Shape:
    """What changed about the captured columns; they are known by number, never by name."""
    now = {column.number: column for column in table.columns}
    lost: dict[SourceColumn, str] = {}
    for column in source.columns:
        if column.type is None:
            continue
        current = now.get(column.number)
        if current is None:
            lost[column] = "was dropped"
        elif current.name != column.name:
            lost[column] = f"was renamed to {current.name}"
        elif current.type != column.type:
            change = f"changed its type from {column.declared} to {current.declared}"
            wider = current.type is not None and is_wider(column.type, current.type)
            lost[column] = f"{change}{WIDER}" if wider else change
    return Shape(lost)


def is_wider(old: Type, new: Type) -> bool:
    """Whether a type has all values of another one, and these mean the same in it."""
    if old.is_text and new.is_text:
        if "character" in (old.kind, new.kind) and old.kind != new.kind:
            return False
        return new.length is None or (old.length is not None and old.length <= new.length)
    if old.is_float or new.is_float:
        return (old.kind, new.kind) == ("real", "double precision")
    if not old.is_number or not new.is_number or (old.scale or 0) > (new.scale or 0):
        return False
    return widening(old, new)


def awaits_rebuild(table: StreamTable) -> bool:
    """Whether a table is suspended only until it is rebuilt over a column of a wider type."""
    suspended = table.status is Status.SUSPENDED and not table.held
    return suspended and (table.reason or "").endswith(WIDER)
