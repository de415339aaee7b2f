"""Expressions of a random query: small frozen trees of templates, columns and queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.relations import Relation

# What a value of each kind is declared as. A quotient is a numeric whose digits vary with the data
# in PostgreSQL, a rough one a float that depends on the order of adding: both are only shown,
# never compared.
DECLARED = {
    "int": "int",
    "bigint": "bigint",
    "numeric": "numeric",
    "exact": "numeric",
    "float": "float8",
    "text": "text",
    "char": "bpchar",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "quotient": "numeric",
    "rough": "float8",
    "ints": "int[]",
    "texts": "text[]",
    "words": "text",
    "json": "jsonb",
    "jsons": "jsonb",
}
KINDS = (
    "int", "bigint", "numeric", "exact", "float", "text", "char", "bool", "date", "timestamp",
)  # fmt: skip

# Documents are only read from tables: an object, or an array of scalars.
DOCUMENTS = frozenset(("json", "jsons"))
# Words are text whose collation is the database's, which nobody orders by.
SHOWN_ONLY = frozenset(("quotient", "rough", "ints", "texts", "words")) | DOCUMENTS


@dataclass(frozen=True)
class Ref:
    """A column of a relation, by its name, which is unique in the whole view."""

    name: str
    kind: str


@dataclass(frozen=True)
class Term:
    """`text` with its parts in the places of {}; `item` names what it adds to the coverage."""

    kind: str
    text: str
    parts: tuple[Part, ...] = ()
    item: str | None = None


@dataclass(frozen=True)
class Query:
    """A query inside an expression, in the parentheses of its template.

    `names` are the columns that it shows, in their order.
    """

    relation: Relation
    names: tuple[str, ...]


Part = Ref | Term | Query
Scalar = Ref | Term


def null(kind: str) -> Term:
    return Term(kind, f"NULL::{DECLARED[kind]}")


def parts_of(scalar: Part) -> tuple[Part, ...]:
    return scalar.parts if isinstance(scalar, Term) else ()


def walk(scalar: Part) -> Iterator[Part]:
    """The expression and all in it, queries as they are."""
    yield scalar
    for part in parts_of(scalar):
        yield from walk(part)


def queries_of(scalar: Scalar) -> tuple[Query, ...]:
    return tuple(part for part in walk(scalar) if isinstance(part, Query))


def refs_of(scalar: Scalar) -> frozenset[str]:
    """The columns named outside of queries."""
    return frozenset(part.name for part in walk(scalar) if isinstance(part, Ref))
