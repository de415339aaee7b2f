"""The fate of a captured table's columns: which of them can still be read as they were."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.catalog.records import Source
from headrace.functions.casts import widening
from headrace.source.table import SourceColumn, SourceTable
from headrace.types import Type


@dataclass(frozen=True)
class Shape:
    """The difference between a source as it was captured and its table as it is.

    `lost` gives, for each captured column that is not as it was, what happened to it; those in
    `wider` have a type now that has all values of the old one. Columns that were added, and columns
    that were never captured, do not count.
    """

    lost: dict[SourceColumn, str]
    wider: frozenset[SourceColumn] = frozenset()

    def reason(self, source: Source, column: SourceColumn) -> str:
        return f"column {column.name} of {source.schema}.{source.name} {self.lost[column]}"


def shape_of(source: Source, table: SourceTable) -> Shape:
    """Return the changes of the captured columns, which are identified by number, never by name."""
    now = {column.number: column for column in table.columns}
    lost: dict[SourceColumn, str] = {}
    wider: set[SourceColumn] = set()
    for column in source.columns:
        if column.type is None:
            continue
        current = now.get(column.number)
        if current is None:
            lost[column] = "was dropped"
        elif current.name != column.name:
            lost[column] = f"was renamed to {current.name}"
        elif current.type != column.type:
            lost[column] = f"changed its type from {column.declared} to {current.declared}"
            if current.type is not None and is_wider(column.type, current.type):
                lost[column] += ", which is wider"
                wider.add(column)
    return Shape(lost, frozenset(wider))


def is_wider(old: Type, new: Type) -> bool:
    """Return whether the new type has all values of the old one, with the same meaning."""
    if old.is_text and new.is_text:
        if "character" in (old.kind, new.kind) and old.kind != new.kind:
            return False
        return new.length is None or (old.length is not None and old.length <= new.length)
    if old.is_float or new.is_float:
        return (old.kind, new.kind) == ("real", "double precision")
    if not old.is_number or not new.is_number or (old.scale or 0) > (new.scale or 0):
        return False
    return widening(old, new)
