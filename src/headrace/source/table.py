"""A source table as PostgreSQL describes it."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.types import Type


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source; `type` is None if PostgreSQL's type has no exact counterpart.

    `physical` names the column in the buffer and in the relation's log. It comes from the
    attribute number, which PostgreSQL never gives to a second column.
    """

    number: int
    name: str
    declared: str
    type: Type | None
    not_null: bool = False

    @property
    def physical(self) -> str:
        return f"c{self.number}"


@dataclass(frozen=True)
class SourceTable:
    """A table that can be captured, at the time of a snapshot.

    `storage` has the table's files (leaf by leaf for a partitioned table): TRUNCATE and every
    rewriting ALTER create new ones, so a new value means that rows changed behind the triggers.
    `keys` are the column numbers of the primary key and of unique constraints without NULLs.
    """

    oid: int
    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    keys: tuple[tuple[int, ...], ...] = ()
    row_triggers: bool = False
    storage: str = ""

    @property
    def stored(self) -> tuple[SourceColumn, ...]:
        """Return the captured columns: those whose type has an exact counterpart."""
        return tuple(column for column in self.columns if column.type is not None)

    def column(self, name: str) -> SourceColumn | None:
        return next((column for column in self.columns if column.name == name), None)
