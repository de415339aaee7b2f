"""What PostgreSQL makes of a query: its columns, and the objects that its names resolve to.

The query is prepared and never run. PostgreSQL records for every view which functions, operators,
types and collations its text uses, by oid. So a view of the query is created, in a transaction that
is rolled back, and not read there. Built-in objects have smaller oids than those of users.
"""

from __future__ import annotations

import os
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
from headrace.source.rights import FIRST_USER_OID
from headrace.types import Type, from_postgres

# A column's base type, or that of its elements, as `from_postgres` takes it; a query returns no
# domains.
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

# The code of a user's mistake by exception class; any other is `invalid-query`.
MISTAKES: tuple[tuple[type[postgres.Error], str], ...] = (
    (postgres.UndefinedTable, "unknown-table"),
    (postgres.InvalidSchemaName, "unknown-table"),
    (postgres.UndefinedColumn, "unknown-column"),
    (postgres.AmbiguousColumn, "ambiguous-column"),
    (postgres.SyntaxError, "syntax-error"),
    (postgres.InsufficientPrivilege, "permission-denied"),
)
# SQLSTATE classes of errors of the server, not of the query.
SERVER_CLASSES = ("08", "53", "57", "58")


@dataclass(frozen=True)
class DescribedColumn:
    """A column of a query's result; `type` is None where it has no exact counterpart.

    A result description has no collation, so a text type is never `ordered` here.
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
    """Return the columns of a single SELECT; raise a `UserError` with PostgreSQL's message."""
    if "\0" in query:
        raise UserError("syntax-error", "the query contains a NUL character")
    with translated(), connection.transaction():
        searching(connection, search_path)
        result = _prepare(connection, query, query)
        if result.nparams:
            raise UserError("invalid-query", "query parameters such as $1 are not supported")
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
    """Set the search path for the rest of the transaction."""
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
    """Return the query as an item of FROM; raise UserError unless it is a SELECT.

    The query was accepted as one statement, so a semicolon outside strings and comments can only
    be its last token. Each semicolon is removed in turn: only the right removal gives valid SQL.
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
        error.diag.message_primary or "PostgreSQL rejected the query",
        detail=detail or None,
        hint=error.diag.message_hint,
    )


def _place(query: str, position: int) -> str | None:
    """Return `Line 2, column 8.` for a position in characters from 1."""
    if not 0 < position <= len(query) + 1:
        return None
    before = query[: position - 1]
    line = before.split("\n")
    return f"Line {len(line)}, column {len(line[-1]) + 1}."


def _text(name: bytes | None) -> str:
    return (name or b"").decode()


# Views are followed, since they are read as part of the query. Columns may have users' enums and
# collations, which PostgreSQL then records too. A user's type counts only if it has the name of a
# built-in type or function, a user's collation only if it is called C. A cast to a domain calls
# the functions of its constraints.
OBJECTS = sql.SQL("""
WITH RECURSIVE views (oid) AS (
    SELECT {view}::regclass::oid
    UNION
    SELECT c.oid FROM views v
    JOIN pg_rewrite r ON r.ev_class = v.oid
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
    WHERE c.relkind = 'v' AND c.oid >= {first}
)
SELECT DISTINCT object.type, CASE d.refclassid
        WHEN 'pg_proc'::regclass THEN d.refobjid::regprocedure::text
        WHEN 'pg_operator'::regclass THEN d.refobjid::regoperator::text
        ELSE object.identity
    END AS identity,
    CASE WHEN v.oid <> {view}::regclass THEN v.oid::regclass::text END AS view
FROM views v
JOIN pg_rewrite r ON r.ev_class = v.oid
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
LEFT JOIN pg_collation c ON d.refclassid = 'pg_collation'::regclass AND c.oid = d.refobjid
CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, 0) AS object
WHERE d.refobjid >= {first}
    AND d.refclassid = ANY (ARRAY['pg_proc', 'pg_operator', 'pg_opfamily', 'pg_opclass', 'pg_type',
        'pg_collation', 'pg_ts_config', 'pg_ts_dict']::regclass[])
    AND (t.oid IS NULL OR (
        t.typtype = 'd' AND r.ev_action::text LIKE '%{{COERCETODOMAIN %'
    ) OR EXISTS (
        SELECT FROM pg_type b WHERE b.typname = t.typname AND b.oid < {first}
    ) OR EXISTS (
        SELECT FROM pg_proc f WHERE f.proname = t.typname AND f.oid < {first}
    ))
    AND (c.oid IS NULL OR c.collname = 'C')
ORDER BY view NULLS FIRST, object.type, identity
""")

TEXT = "SELECT rtrim(pg_get_viewdef(%(view)s::regclass), ';')"


@dataclass(frozen=True)
class UserObject:
    """An object that is not built in, by PostgreSQL's name for it; `view` is the view that uses it.

    `kind` is PostgreSQL's word: function, aggregate, operator, type, collation.
    """

    kind: str
    identity: str
    view: str | None


@dataclass(frozen=True)
class Resolved:
    """A query with all names qualified, and the user objects that it calls.

    The text means the same under any search path. `user_objects` has every object that is not
    built in and that the query, or a view that it reads, would call.
    """

    text: str
    user_objects: tuple[UserObject, ...]


def user_objects(
    connection: Connection[Any], query: str, search_path: Sequence[str]
) -> tuple[UserObject, ...]:
    """Return the user objects that a query, or a view that it reads, would call.

    The query must be one that `describe` accepts.
    """
    return resolve(connection, query, search_path).user_objects


def resolve(
    connection: Connection[Any],
    query: str,
    search_path: Sequence[str],
    names: Sequence[str] = (),
) -> Resolved:
    """Return the query with all names resolved; `names` rename its first columns."""
    # A role that may not create temporary objects uses Headrace's own schema.
    places = ("pg_temp.headrace_query", own_view(connection.info.backend_pid))
    for place in places:
        with translated(), connection.transaction(force_rollback=True):
            try:
                _create_view(connection, place, query, search_path, names)
            except postgres.InsufficientPrivilege:
                if place is places[-1]:
                    raise
                continue
            connection.execute("SET LOCAL search_path = pg_catalog")
            parameters = {"view": place}
            rows = connection.execute(objects_sql(place)).fetchall()
            text = connection.execute(TEXT, parameters).fetchone()
            assert text is not None
            return Resolved(text[0], tuple(UserObject(*row) for row in rows))
    raise AssertionError("the view was created in neither schema")


def objects_sql(view: str) -> str:
    """Return a query of the user objects that a view calls; `view` is its quoted name."""
    return OBJECTS.format(view=sql.Literal(view), first=FIRST_USER_OID).as_string()


def own_view(number: int) -> str:
    """Return the quoted name of a temporary view in Headrace's schema."""
    return sql.Identifier("headrace", f"query_{number}_{os.getpid()}").as_string()


def _create_view(
    connection: Connection[Any],
    name: str,
    query: str,
    search_path: Sequence[str],
    names: Sequence[str],
) -> None:
    """Create the view; the query is an item of FROM because its column names may repeat."""
    searching(connection, search_path)
    listed = sql.SQL(", ").join(map(sql.Identifier, names)).as_string()
    targets, aliases = (listed, f" ({listed})") if names else ("1 AS one", "")
    item = as_subquery(connection, query)
    text = f"CREATE VIEW {name} AS SELECT {targets} FROM {item}{aliases}"
    with connection.lock:
        # The extended protocol takes a single statement only.
        result = connection.pgconn.exec_params(text.encode(), [])
    if result.status != ExecStatus.COMMAND_OK:
        raise error_from_result(result, encoding="utf-8")
