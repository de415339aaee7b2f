"""The context of a query: what table names mean in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headrace.errors import UserError
from headrace.plan.keys import Keys
from headrace.query.identifiers import ColumnIds
from headrace.query.schema import Schema
from headrace.query.scope import Scope
from headrace.types import Type

MAXIMUM_NESTING = 32
"""Queries inside queries: derived tables, uses of WITH, and views."""
MAXIMUM_TABLES = 256
"""Tables in FROM after WITH and views are put in place; a WITH query that is used twice is two."""


@dataclass(frozen=True)
class Defined:
    """A query of WITH, and where it stands.

    `variable` is the relation by which a recursive one reads itself, the same wherever it is used.
    """

    node: exp.CTE
    context: Context
    variable: str | None = None


@dataclass(frozen=True)
class WorkingTable:
    """A recursive query's own name inside of it: the rows of the level before.

    `quotients` are positions of columns that come from a numeric division.
    """

    variable: str
    names: tuple[str, ...]
    types: tuple[Type, ...]
    quotients: frozenset[int]


@dataclass(frozen=True)
class Context:
    """The tables that a query can name, the ids of its plan, and how deep it stands.

    `defined` are the visible queries of WITH, which go before the tables of the schema.
    `enclosing` is what a query inside an expression, or a lateral one, sees of the row that it is
    evaluated for. `keys` are those of the relations that were read so far.
    """

    schema: Schema
    ids: ColumnIds = field(default_factory=ColumnIds)
    defined: Mapping[str, Defined | WorkingTable] = field(default_factory=dict)
    level: int = 0
    enclosing: Scope | None = None
    keys: Keys = field(default_factory=dict)

    def inside(self, scope: Scope) -> Context:
        """Return the context of a query that is evaluated for each row of the scope."""
        return replace(self.deeper(), enclosing=replace(scope, enclosing=self.enclosing))

    @property
    def depth(self) -> int:
        """The number of rows that a query here is evaluated for."""
        return 0 if self.enclosing is None else self.enclosing.depth

    def deeper(self) -> Context:
        """Return the context of a query inside this one."""
        if self.level == MAXIMUM_NESTING:
            raise nested_too_deeply()
        return replace(self, level=self.level + 1)

    def defining(self, name: str, defined: Defined | WorkingTable) -> Context:
        """Return the context with one more name that goes before the tables of the schema."""
        return replace(self, defined={**self.defined, name: defined})

    def next_scan(self) -> int:
        number = self.ids.next_scan()
        if number > MAXIMUM_TABLES:
            raise UserError(
                "unsupported-query",
                f"the query reads more than {MAXIMUM_TABLES} tables",
                detail="A query of WITH counts as often as it is used.",
                hint="Make an inner query a stream table of its own.",
            )
        return number


def nested_too_deeply() -> UserError:
    return UserError(
        "unsupported-query",
        "queries are nested too deeply",
        hint="Make an inner query a stream table of its own.",
    )
