"""What the names of a query mean: filled by the caller from the catalog and PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headrace.types import Type


@dataclass(frozen=True)
class BoundColumn:
    """A column as a query sees it (`name`) and as its relation stores it (`physical`).

    `type` is None where PostgreSQL's type, spelled in `declared`, has no exact counterpart: the
    column is stored nowhere and a query that uses it is refused.
    """

    name: str
    physical: str
    type: Type | None
    declared: str


@dataclass(frozen=True)
class BoundTable:
    """A table or stream table that a query may read.

    `keys` are sets of column names that are unique together and never NULL.
    """

    relation: str
    schema: str
    name: str
    columns: tuple[BoundColumn, ...]
    keys: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class BoundView:
    """A view that a query may read: bound in place, as a derived table.

    `query` is its text as `pg_get_viewdef` prints it where no search path is set, so that every
    name in it has its schema; `columns` are the names that the view gives to its columns.
    """

    schema: str
    name: str
    query: str
    columns: tuple[str, ...]


class Schema(Protocol):
    """The tables and views that a query may name."""

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        """What has that name; without a schema, what PostgreSQL's search path finds."""


@dataclass(frozen=True)
class Qualified:
    """A schema as the text of a view sees it: without a search path."""

    schema: Schema

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        return None if schema is None else self.schema.resolve(schema, name)
