"""The query of a stream table as a text over source tables alone, for PostgreSQL to answer.

Stream tables and views that it reads are put in their places as subqueries. A stream table's
columns have the types and the digits that are stored of them, which is what its readers read.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from headrace.catalog import State
from headrace.catalog.records import OutputColumn, StreamTable
from headrace.engine import HOME
from headrace.errors import UserError
from headrace.graph.components import cycles
from headrace.query import BoundView, table_names
from headrace.query.query_text import Name, with_shadows, without_semicolon
from headrace.relations.definition import InputSchema, schema_of
from headrace.types import Type

LONGEST_TEXT = 1_000_000


def over_sources(table: StreamTable, state: State) -> str:
    """Return the text of the table's query, over sources of the home database."""
    if table.relation in cycles(state.stream_tables):
        raise unsupported(f"stream table {table.schema}.{table.name} is in a cycle")
    return _over_sources(table.query, schema_of(table, state), state)


def _over_sources(query: str, schema: InputSchema, state: State) -> str:
    places: dict[Name, str] = {}
    for name in table_names(query):
        resolved = schema.resolve(*name)
        assert resolved is not None
        if isinstance(resolved, BoundView):
            places[name] = _subquery(_over_sources(resolved.query, schema, state))
            continue
        origin = state.origin(resolved.relation)
        assert origin is not None
        if isinstance(origin, StreamTable):
            places[name] = _subquery(stored(over_sources(origin, state), origin.columns))
        elif origin.database != HOME:
            raise unsupported(f"{state.called(origin)} is in an attached database")
        elif name[0] is None:
            places[name] = sql.Identifier(origin.schema, origin.name).as_string()
    text = with_shadows(without_semicolon(query), places)
    if len(text) > LONGEST_TEXT:
        raise unsupported("its text over source tables is too long")
    return text


def stored(query: str, columns: Sequence[OutputColumn]) -> str:
    """Return a query with the columns of another one, as a stream table stores them."""
    numbered = [f"c{number}" for number in range(1, len(columns) + 1)]
    items = [
        f"{_cast(rounded(name, column.type), column)} AS {sql.Identifier(column.name).as_string()}"
        for name, column in zip(numbered, columns, strict=True)
    ]
    listed = ", ".join(numbered)
    return f"SELECT {', '.join(items)} FROM {_subquery(query)} AS query ({listed})"


def _cast(value: str, column: OutputColumn) -> str:
    """Return the value cast to the served type.

    A value of an enum has that type already, and casts of enums may be users' own.
    """
    return value if column.type.is_of_users else f"CAST({value} AS {column.served})"


def rounded(value: str, type_: Type) -> str:
    """Return the SQL value with the digits that its stored type keeps."""
    if type_.kind == "numeric":
        return f"pg_catalog.round({value}, {type_.scale})"
    if type_.element is None or type_.element.kind != "numeric":
        return value
    each = rounded("element", type_.element)
    return (
        f"CASE WHEN pg_catalog.cardinality({value}) = 0 THEN {value} ELSE"
        f" (SELECT pg_catalog.array_agg({each} ORDER BY place)"
        f" FROM pg_catalog.unnest({value}) WITH ORDINALITY AS element_of (element, place)) END"
    )


def _subquery(text: str) -> str:
    return f"(\n{text}\n)"


def unsupported(why: str, hint: str | None = None) -> UserError:
    """Return the error for a table whose query PostgreSQL cannot answer."""
    return UserError(
        "oracle-unsupported",
        f"PostgreSQL cannot be asked for the answer: {why}",
        hint=hint or "Verify it without an oracle: Spark then recomputes it.",
    )
