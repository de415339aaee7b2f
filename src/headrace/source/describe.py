"""What PostgreSQL says a query returns, by preparing it: the query is never run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql
from psycopg import errors as postgres
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from headrace.errors import HeadraceError, UserError
from headrace.source.faults import translate, translated
from headrace.types import Type, from_postgres

# A column's base type, or that of its elements, as `from_postgres` wants it; domains are gone
# before a query returns them.
NAMES = """
SELECT format_type(given.oid, given.typmod),
    CASE WHEN b.typtype = 'e' THEN quote_ident(n.nspname) || '.' || quote_ident(b.typname) END,
    CASE WHEN b.oid <> t.oid THEN b.oid END
FROM unnest(%(oids)s::oid[], %(typmods)s::integer[]) WITH ORDINALITY AS given (oid, typmod, place)
JOIN pg_type t ON t.oid = given.oid
LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
JOIN pg_type b ON b.oid = coalesce(e.oid, t.oid)
JOIN pg_namespace n ON n.oid = b.typnamespace
ORDER BY given.place
"""

# Which mistake of the user's a SQLSTATE stands for; any other is `invalid-query`.
MISTAKES: tuple[tuple[type[postgres.Error], str], ...] = (
    (postgres.UndefinedTable, "unknown-table"),
    (postgres.InvalidSchemaName, "unknown-table"),
    (postgres.UndefinedColumn, "unknown-column"),
    (postgres.AmbiguousColumn, "ambiguous-column"),
    (postgres.SyntaxError, "syntax-error"),
    (postgres.InsufficientPrivilege, "permission-denied"),
)
# These say something about the server, not about the query.
SERVER_CLASSES = ("08", "53", "57", "58")


@dataclass(frozen=True)
class DescribedColumn:
    """A column of a query's result; `type` is None where it has no exact counterpart.

    A result tells no collation, so a text type is never `ordered` here.
    """

    name: str
    oid: int
    typmod: int
    declared: str
    type: Type | None


def describe(
    connection: Connection[Any],
    query: str,
    search_path: Sequence[str] = ("public",),
) -> tuple[DescribedColumn, ...]:
    """The columns that a single SELECT returns; raises a `UserError` in PostgreSQL's own words."""
    if "\0" in query:
        raise UserError("syntax-error", "the query contains a NUL character")
    with translated(), connection.transaction():
        searching(connection, search_path)
        result = _prepare(connection, query, query)
        if result.nparams:
            raise UserError("invalid-query", "the query has parameters such as $1")
        as_subquery(connection, query)
        fields = [
            (_text(result.fname(i)), result.ftype(i), result.fmod(i)) for i in range(result.nfields)
        ]
        connection.execute("SET LOCAL search_path = pg_catalog")
        parameters = {"oids": [oid for _, oid, _ in fields], "typmods": [mod for *_, mod in fields]}
        names = connection.execute(NAMES, parameters).fetchall()
    if not fields:
        raise UserError("invalid-query", "the query returns no columns")
    return tuple(
        DescribedColumn(
            name,
            oid,
            typmod,
            declared,
            from_postgres(oid, typmod, enum=enum, ordered=False, element=element),
        )
        for (name, oid, typmod), (declared, enum, element) in zip(fields, names, strict=True)
    )


def searching(connection: Connection[Any], search_path: Sequence[str]) -> None:
    """Look up names by the search path for the rest of the transaction."""
    path = sql.SQL(", ").join([sql.Identifier(name) for name in search_path or ("pg_catalog",)])
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(path))


def _prepare(connection: Connection[Any], text: str, query: str) -> PGresult:
    with connection.lock:
        result = connection.pgconn.prepare(b"", text.encode())
        if result.status == ExecStatus.COMMAND_OK:
            result = connection.pgconn.describe_prepared(b"")
    if result.status != ExecStatus.COMMAND_OK:
        raise _mistake(error_from_result(result, encoding="utf-8"), query)
    return result


def as_subquery(connection: Connection[Any], query: str) -> str:
    """The query as an item of FROM; UserError if PostgreSQL takes it for anything but a SELECT.

    The query was accepted as one statement, so a semicolon outside strings and comments can only
    be its last token; removing the right one makes it fit, removing another changes nothing here.
    """
    for text in _without_one_semicolon(query):
        item = f"(\n{text}\n) AS query"
        try:
            with connection.transaction():
                _prepare(connection, f"SELECT FROM {item}", query)
        except UserError as error:
            if error.code in ("syntax-error", "invalid-query"):
                continue
            raise
        return item
    raise UserError(
        "invalid-query",
        "the query is not a plain SELECT",
        hint="Write one SELECT, WITH … SELECT, VALUES or TABLE that changes nothing.",
    )


def _without_one_semicolon(query: str) -> Iterator[str]:
    yield query
    end = query.rfind(";")
    while end >= 0:
        yield f"{query[:end]} {query[end + 1 :]}"
        end = query.rfind(";", 0, end)


def _mistake(error: postgres.Error, query: str) -> HeadraceError:
    if error.sqlstate is None or error.sqlstate[:2] in SERVER_CLASSES:
        return translate(error)
    code = next((code for kind, code in MISTAKES if isinstance(error, kind)), "invalid-query")
    place = _place(query, int(error.diag.statement_position or 0))
    detail = " ".join(part for part in (error.diag.message_detail, place) if part)
    return UserError(
        code,
        error.diag.message_primary or "PostgreSQL refuses the query",
        detail=detail or None,
        hint=error.diag.message_hint,
    )


def _place(query: str, position: int) -> str | None:
    """`Line 2, column 8.` for a position that PostgreSQL counts in characters from 1."""
    if not 0 < position <= len(query) + 1:
        return None
    before = query[: position - 1]
    line = before.split("\n")
    return f"Line {len(line)}, column {len(line[-1]) + 1}."


def _text(name: bytes | None) -> str:
    return (name or b"").decode()
