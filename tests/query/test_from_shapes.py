"""FROM in every shape: PostgreSQL's rows, or a refusal where PostgreSQL refuses too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.plan.evaluate import evaluate
from headrace.query import bind
from tests.query.from_shapes import FromSchema, Shapes, ddl, read

pytestmark = pytest.mark.postgres

REFUSALS = ("the query reads no table",)
"""What is refused although PostgreSQL answers."""
PLANNER_LIMITS = "FULL JOIN is only supported with merge-joinable or hash-joinable"
"""What PostgreSQL parses and cannot execute."""


@pytest.fixture
def database(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(ddl())
        yield connection


LISTED = (
    # The item after the comma is the join, not its first table.
    "SELECT t.k, u.z FROM a t, LATERAL (SELECT y FROM b) AS l RIGHT JOIN c u ON l.y = u.z",
    "SELECT t.k, u.z FROM a t, LATERAL (SELECT y FROM b) AS l FULL JOIN c u ON l.y = u.z",
    "SELECT t.k AS o, u.z FROM a t, LATERAL (SELECT y FROM b) AS l NATURAL JOIN c u",
    "SELECT t.k, u.z FROM a t, LATERAL (SELECT t.x AS y) AS l RIGHT JOIN c u ON l.y = u.z",
    "SELECT t.k, u.z FROM a t, LATERAL (SELECT t.x AS y) AS l FULL JOIN c u ON l.y = u.z",
    "SELECT t.k, g, u.z FROM a t, generate_series(1, t.x) g RIGHT JOIN c u ON g = u.z",
    "SELECT t.k AS o, l.y FROM a t JOIN LATERAL (SELECT y, k FROM b) AS l USING (k)",
    "SELECT t.k AS o, l.y FROM a t NATURAL LEFT JOIN LATERAL (SELECT y, k FROM b) AS l",
    "SELECT t.k, l.y FROM a t RIGHT JOIN LATERAL (SELECT y FROM b) AS l ON t.x = l.y",
    "SELECT t.x, l.y, l.w FROM a t JOIN (b u CROSS JOIN LATERAL (SELECT t.x + u.k AS w, u.y) l)"
    " ON l.w > 2",
    "SELECT t.x, u.z FROM a t LEFT JOIN (LATERAL (SELECT t.x) l (v) FULL JOIN c u ON u.x = v)"
    " ON true",
    "SELECT t.x FROM a t JOIN b u CROSS JOIN c v ON t.k = u.k",
    "SELECT t.x FROM a t JOIN b u NATURAL JOIN c v ON t.k = u.k",
    "SELECT t.x FROM a t LEFT JOIN b u JOIN c v ON u.y = v.y ON t.k = u.k",
    "SELECT j.k, a.x FROM (a JOIN b USING (k)) AS j, a",
    "SELECT u.k, a.k AS l FROM a FULL JOIN b USING (k) AS u WHERE u.k IS NOT NULL",
    "SELECT (t).k, (SELECT count(*) FROM b WHERE (b).k = (t).k) AS n FROM a t",
    "SELECT (t).* FROM a t WHERE (t).k > 1",
    "SELECT pg_catalog.abs(pg_catalog.abs(x)) FROM a",
    "SELECT pg_catalog.sum(x) AS s, pg_catalog.count(*) FILTER (WHERE x > 1) AS n FROM a",
    "SELECT x, pg_catalog.row_number() OVER (ORDER BY x, k, y) AS n FROM c CROSS JOIN e",
    "SELECT a.k, g FROM a, ROWS FROM (generate_series(1, a.x)) AS g",
    "SELECT a.k, g.o, u FROM a, ROWS FROM (generate_series(1, a.k)) WITH ORDINALITY AS g (u, o)",
    "SELECT a.k, g.* FROM a, ROWS FROM (unnest(ARRAY[x, 1]), unnest(ARRAY[a.k])) AS g (u, v)",
    "SELECT (SELECT * FROM e WHERE e.k = t.k) AS w, t.x FROM a t",
    "SELECT t.x FROM a t WHERE EXISTS (SELECT FROM b WHERE b.k = t.k)",
)


@pytest.mark.parametrize("query", LISTED)
def test_listed_shapes(database: psycopg.Connection[Any], query: str) -> None:
    assert outcome(database, query) == "equal"


REFUSED = (
    "SELECT t.x FROM a t RIGHT JOIN LATERAL (SELECT t.k AS y) AS l ON true",
    "SELECT t.x FROM a t FULL JOIN LATERAL (SELECT x AS y) AS l ON t.x = y",
    "SELECT t.x FROM a t RIGHT JOIN (b u CROSS JOIN LATERAL (SELECT t.k) AS l) ON true",
    "SELECT t.x FROM a t, b u JOIN c v ON v.x = t.x",
    "SELECT t.x FROM a t JOIN (SELECT t.x) q ON true",
    "SELECT t.x FROM LATERAL (SELECT t.x) q, a t",
    "SELECT t.x FROM (a t, b u)",
    "SELECT t.x FROM a t JOIN b u",
    "SELECT t.x FROM a t CROSS JOIN b u ON true",
    "SELECT a.x FROM (a JOIN b USING (k)) AS j",
    "SELECT j.x FROM a CROSS JOIN (a CROSS JOIN LATERAL (SELECT a.x AS w) l) AS j",
    "SELECT x FROM a JOIN b USING (k, k)",
    "SELECT u.x FROM a JOIN b USING (k) AS u",
    "SELECT a.x FROM a JOIN b USING (k) AS a",
    "SELECT a.x FROM a,",
    "SELECT (t).no FROM a t",
    "SELECT (u).k FROM a t",
    "SELECT pg_catalog.no_such_function(x) FROM a",
)


@pytest.mark.parametrize("query", REFUSED)
def test_refused_as_by_postgres(database: psycopg.Connection[Any], query: str) -> None:
    with pytest.raises(psycopg.Error):
        database.execute(query)
    with pytest.raises(UserError):
        bind(query, FromSchema())


@pytest.mark.parametrize("seed", range(4))
def test_random_shapes(database: psycopg.Connection[Any], seed: int) -> None:
    shapes = Shapes(Random(seed))
    outcomes: Counter[str] = Counter()
    for _ in range(150):
        outcomes[outcome(database, shapes.query())] += 1
    assert outcomes["equal"] > 80, outcomes
    assert outcomes["invalid"] > 5, outcomes
    assert outcomes["refused"] < 20, outcomes
    assert all(shapes.used.values()), shapes.used


def outcome(database: psycopg.Connection[Any], query: str) -> str:
    """equal, invalid, refused or not executed; asserts that these are right."""
    found = compared(database, query)
    if found == "equal":
        # PostgreSQL's text need not mean the same: a column of USING may be printed ambiguously.
        compared(database, printed(database, query))
    return found


def compared(database: psycopg.Connection[Any], query: str) -> str:
    try:
        right = Counter(database.execute(query).fetchall())
    except psycopg.Error as error:
        right, problem = None, str(error)
    refused = refusal(query)
    if right is None:
        assert refused is not None or PLANNER_LIMITS in problem, (query, problem)
        return "not executed" if PLANNER_LIMITS in problem else "invalid"
    if refused is not None:
        assert any(re.search(known, refused) for known in REFUSALS), (query, refused)
        return "refused"
    bound = bind(query, FromSchema())
    for plan in (bound.written, bound.plan):
        assert evaluate(plan, read) == right, query
    return "equal"


def refusal(query: str) -> str | None:
    try:
        bind(query, FromSchema())
    except UserError as error:
        return str(error)
    return None


def printed(database: psycopg.Connection[Any], query: str) -> str:
    """The query as PostgreSQL understood it: joins stand in parentheses."""
    database.execute(f"CREATE TEMP VIEW printed AS {query}")
    row = database.execute("SELECT pg_get_viewdef('printed'::regclass)").fetchone()
    database.execute("DROP VIEW printed")
    assert row is not None
    return str(row[0]).rstrip(";")
