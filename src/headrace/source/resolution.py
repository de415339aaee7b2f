"""What PostgreSQL resolves the names in a query to, read from the dependencies of a view.

PostgreSQL records for every view which functions, operators, types and collations its text means,
by oid. A view of the query is created in a transaction that is rolled back, and not read there.
Built-in objects have smaller oids than those of users.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql
from psycopg import errors as postgres
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

from headrace.source.describe import as_subquery, searching
from headrace.source.faults import translated
from headrace.source.rights import FIRST_USER_OID

# Views are followed, since they are read as part of the query. Columns may be of users' enums and
# collations, which are then named here as well; a cast or COLLATE leads to one only if it is called
# as a built-in one, and f(x) to a cast only if a type is called as a function. A cast to a domain
# calls what its constraints call.
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
    """Something that is not built in, as PostgreSQL names it; `view` is where it is named.

    `kind` is PostgreSQL's word: function, aggregate, operator, type, collation.
    """

    kind: str
    identity: str
    view: str | None


@dataclass(frozen=True)
class Resolved:
    """A query as PostgreSQL reads it: its text with every name spelled out, and what it calls.

    The text means the same under any search path. `user_objects` has all that the query and the
    views that it reads would call of what is not built in.
    """

    text: str
    user_objects: tuple[UserObject, ...]


def user_objects(
    connection: Connection[Any], query: str, search_path: Sequence[str]
) -> tuple[UserObject, ...]:
    """What users have made of all that a query and the views that it reads would call.

    The query is one that `describe` accepts.
    """
    return resolve(connection, query, search_path).user_objects


def resolve(
    connection: Connection[Any],
    query: str,
    search_path: Sequence[str],
    names: Sequence[str] = (),
) -> Resolved:
    """The query as PostgreSQL reads it; its first columns get these names, if any are given."""
    # A role that may not create temporary objects has Headrace's own schema.
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
    raise AssertionError("a view was made in neither place")


def objects_sql(view: str) -> str:
    """A query of the user objects that a view calls; `view` is its quoted name."""
    return OBJECTS.format(view=sql.Literal(view), first=FIRST_USER_OID).as_string()


def own_view(number: int) -> str:
    """The quoted name of a view of our own, in our schema."""
    return sql.Identifier("headrace", f"query_{number}_{os.getpid()}").as_string()


def _create_view(
    connection: Connection[Any],
    name: str,
    query: str,
    search_path: Sequence[str],
    names: Sequence[str],
) -> None:
    """Names in the query may repeat, so that it is read in FROM."""
    searching(connection, search_path)
    listed = sql.SQL(", ").join(map(sql.Identifier, names)).as_string()
    wanted, called = (listed, f" ({listed})") if names else ("1 AS one", "")
    item = as_subquery(connection, query)
    text = f"CREATE VIEW {name} AS SELECT {wanted} FROM {item}{called}"
    with connection.lock:
        # As one statement with parameters it cannot be several.
        result = connection.pgconn.exec_params(text.encode(), [])
    if result.status != ExecStatus.COMMAND_OK:
        raise error_from_result(result, encoding="utf-8")
