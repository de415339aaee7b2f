"""The meaning of a query's names, and facts of the database that it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from headrace.query.refusal import refuse
from headrace.types import Collation, Type, default_collation


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
        """Return the table or view of that name; without a schema, the first on the search path."""


@dataclass(frozen=True)
class Qualified:
    """A schema as the text of a view sees it: without a search path."""

    schema: Schema

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        return None if schema is None else self.schema.resolve(schema, name)


UNORDERED_NOTICE = (
    "Where LIMIT, array_agg or string_agg say no order, rows are taken in the order of their"
    " columns, NULLs last and text by its bytes: unspecified_order is by_value."
)


@dataclass(frozen=True)
class Rules:
    """The default `collation` of the database, and whether an order that the text leaves open is
    that of the values, `by_value`.
    """

    collation: Collation = Collation.OTHER
    by_value: bool = False


@dataclass
class _Binding:
    rules: Rules = field(default_factory=Rules)
    ordered_by_value: bool = False


_current: ContextVar[_Binding] = ContextVar("binding", default=_Binding())  # noqa: B039


@contextmanager
def following(rules: Rules) -> Iterator[_Binding]:
    """Bind a query by these rules; the object yielded says afterwards which of them were needed."""
    binding = _Binding(rules)
    token = _current.set(binding)
    try:
        with default_collation(rules.collation):
            yield binding
    finally:
        _current.reset(token)


def order_by_value(what: str, node: exp.Expr, hint: str) -> None:
    """Refuse a clause that leaves its order unspecified, unless the values are to decide."""
    binding = _current.get()
    if not binding.rules.by_value:
        message = f"{what} without ORDER BY is not maintained"
        hint = f"{hint}, or set the option unspecified_order to by_value."
        raise refuse("unsupported-query", message, node, hint)
    binding.ordered_by_value = True
