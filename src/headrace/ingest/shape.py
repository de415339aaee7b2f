"""What became of a captured table's columns: which of them can still be read as they were."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.catalog.records import Source
from headrace.source.table import SourceColumn, SourceTable


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
            lost[column] = f"changed its type from {column.declared} to {current.declared}"
    return Shape(lost)
