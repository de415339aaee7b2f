"""What users have made is never taken for what is built in: PostgreSQL says which one is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from headrace.lifecycle.planned_table import FIRST, PlannedTable, TableRequest
from headrace.lifecycle.planning import plan
from headrace.lifecycle.table_spec import TableSpec
from headrace.source.connection import Database
from headrace.source.describe import user_objects
from tests.lifecycle.made import put_tables

pytestmark = pytest.mark.postgres

TABLES = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN price AS numeric(10,2) CHECK (VALUE >= 0);
CREATE DOMAIN code AS varchar(5);
CREATE COLLATION unlike_c (provider = libc, locale = 'C');
CREATE TABLE t (
    id integer PRIMARY KEY, n integer, v varchar(20), w text, m mood, p price, c code, d date,
    b boolean, moods mood[], u varchar COLLATE unlike_c, z numeric(20,5)
);
"""
# Each is found by PostgreSQL before the built-in one: by its exact types, or by the search path.
SHADOWS = """
CREATE FUNCTION lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'mine' $$;
CREATE FUNCTION plus(integer, date) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION same(varchar, varchar) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION same(mood, mood) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR = (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = same);
CREATE OPERATOR ~~ (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = same);
CREATE OPERATOR = (LEFTARG = mood, RIGHTARG = mood, FUNCTION = same);
CREATE AGGREGATE max (varchar) (SFUNC = textcat, STYPE = text);
CREATE FUNCTION dated(text) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT '2000-01-01'::date $$;
CREATE CAST (text AS date) WITH FUNCTION dated(text);
CREATE FUNCTION truth(integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
"""


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture
def project(dsn: str, sql: psycopg.Connection[Any], tmp_path: Path) -> Iterator[headrace.Headrace]:
    """A project whose Spark never starts."""
    with headrace.connect(dsn=dsn, home=tmp_path) as opened:
        yield opened


def planned(project: headrace.Headrace, query: str) -> PlannedTable:
    engine = project._engine
    (making,) = plan(
        engine, engine.catalog.state(), [TableSpec(FIRST, TableRequest("s", query))]
    ).planned_tables
    return making


SHADOWED = [
    ("SELECT id, lower(v) AS x FROM t", "function public.lower(character varying)"),
    ("SELECT id, lower(c) AS x FROM t", "function public.lower(character varying)"),
    ("SELECT id, v::text::date AS x FROM t", "function public.dated(text)"),
    ("SELECT id FROM t WHERE v = c", "operator public.=(character varying,character varying)"),
    ("SELECT id FROM t WHERE v IN (SELECT c FROM t)", "operator public.=("),
    ("SELECT id FROM t WHERE v IS DISTINCT FROM c", "operator public.=("),
    ("SELECT nullif(v, c) AS x FROM t", "operator public.=("),
    ("SELECT CASE v WHEN c THEN 1 END AS x FROM t", "operator public.=("),
    ("SELECT a.id FROM t AS a JOIN t AS b USING (v)", "operator public.=("),
    ("SELECT id FROM t WHERE v LIKE 'a%'::varchar", "operator public.~~("),
    ("SELECT id FROM t WHERE m = 'sad'", "operator public.=(public.mood,public.mood)"),
    ("SELECT max(v) AS x FROM t", "aggregate public.max(character varying)"),
    ("SELECT id, max(v) OVER () AS x FROM t", "aggregate public.max(character varying)"),
    ("WITH q AS (SELECT lower(v) AS x FROM t) SELECT x FROM q;", "function public.lower("),
    ("SELECT id FROM t WHERE EXISTS (SELECT FROM t AS i WHERE lower(i.v) = t.w)", "function pub"),
    ("SELECT w FROM t UNION SELECT lower(v) FROM t -- all", "function public.lower("),
]


@pytest.mark.parametrize(("query", "named"), SHADOWED)
def test_an_object_of_users_that_postgresql_prefers_is_refused(
    project: headrace.Headrace, sql: psycopg.Connection[Any], query: str, named: str
) -> None:
    planned(project, query)
    sql.execute(SHADOWS)
    with pytest.raises(headrace.UserError) as caught:
        planned(project, query)
    assert caught.value.message.startswith(named)
    assert caught.value.message.endswith(" is not built in")
    assert caught.value.code == "unsupported-function"
    assert "in the query" in (caught.value.detail or "")


@pytest.mark.parametrize(
    ("query", "type_"),
    [
        ("SELECT id, lower(v) AS x FROM t", "DOMAIN lower AS text CHECK (hostile(value))"),
        ("SELECT id, lower('ABC') AS x FROM t", "DOMAIN lower AS text CHECK (hostile(value))"),
        ("SELECT count(v) AS x FROM t", "DOMAIN count AS text CHECK (hostile(value))"),
        ("SELECT id FROM t WHERE upper(v) = 'a'", "TYPE upper AS ENUM ('a')"),
    ],
)
def test_a_type_that_a_call_would_be_a_cast_to_is_refused(
    project: headrace.Headrace, sql: psycopg.Connection[Any], query: str, type_: str
) -> None:
    """PostgreSQL reads f(x) as a cast if no function f takes x as it is, and there is a type f."""
    planned(project, query)
    sql.execute("CREATE FUNCTION hostile(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
    sql.execute(f"CREATE {type_}")
    with pytest.raises(headrace.UserError) as caught:
        planned(project, query)
    assert caught.value.message.endswith(" is not built in")


@pytest.mark.parametrize("query", [query for query, _ in SHADOWED])
def test_the_same_is_refused_in_a_view(
    project: headrace.Headrace, sql: psycopg.Connection[Any], query: str
) -> None:
    sql.execute(SHADOWS)
    sql.execute(f"CREATE VIEW inner_view AS {query.partition(';')[0]}\n")
    sql.execute("CREATE VIEW outer_view AS SELECT * FROM inner_view")
    with pytest.raises(headrace.UserError) as caught:
        planned(project, "SELECT * FROM outer_view")
    assert caught.value.code in ("unsupported-function", "unsupported-query")
    with Database(project.dsn) as database, database.session() as session:
        found = user_objects(session, "SELECT * FROM outer_view", ["public"])
    assert {one.view for one in found} == {"public.inner_view"}


def test_a_view_keeps_what_it_was_made_with(
    project: headrace.Headrace, sql: psycopg.Connection[Any]
) -> None:
    """As in PostgreSQL: what is created later is not what an older view calls."""
    sql.execute("CREATE VIEW older AS SELECT id, lower(v) AS x, nullif(v, c) AS y FROM t")
    sql.execute(SHADOWS)
    planned(project, "SELECT * FROM older")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, m, p, c, moods FROM t WHERE m = 'sad' OR m IN ('happy', 'sad')",
        "SELECT m, count(*) AS n FROM t GROUP BY m",
        "SELECT m FROM t UNION SELECT 'sad' FROM t",
        "SELECT id, v, count(*) AS n FROM t GROUP BY id",
        "SELECT coalesce(m, 'sad') AS m FROM t",
        "SELECT id, p + 1 AS a, coalesce(p, 0) AS b, CASE WHEN b THEN p END AS c FROM t",
        "SELECT p FROM t UNION ALL SELECT p FROM t UNION ALL SELECT 0 FROM t",
        "SELECT min(p) AS p, sum(p) AS s FROM t GROUP BY c",
        "SELECT id FROM t WHERE v IN (SELECT c FROM t) AND p > ALL (SELECT p FROM t)",
        "SELECT c || 'x' AS c, lower(c) AS l, u || 'y' AS u FROM t WHERE c = 'a' AND u = 'b'",
        "SELECT id FROM t WHERE w COLLATE \"C\" < 'a'",
        "SELECT a.id FROM t AS a JOIN t AS b ON a.m = b.m AND a.c = b.c AND a.p = b.p",
        "SELECT id, 'sad' = ANY (moods) AS x FROM t WHERE moods @> ARRAY[m]",
        "SELECT a FROM (SELECT id AS a, n AS a2 FROM t) AS q ORDER BY a LIMIT 3",
        "SELECT (SELECT max(i.n) FROM t AS i WHERE i.m = t.m) AS x, id FROM t",
        "WITH RECURSIVE r AS (SELECT id, m FROM t UNION SELECT t.id, t.m FROM t"
        " JOIN r ON r.m = t.m) SELECT * FROM r",
    ],
)
def test_enums_domains_and_built_in_calls_stay(project: headrace.Headrace, query: str) -> None:
    planned(project, query)


def test_a_search_path_that_puts_users_before_the_built_in_ones(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    sql.execute("""
        CREATE FUNCTION abs(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 0';
        CREATE DOMAIN "text" AS pg_catalog.varchar(1);
        CREATE COLLATION "C" (provider = libc, locale = 'C');
    """)
    home = tmp_path / "first"
    with headrace.connect(dsn=dsn, home=home) as project:
        planned(project, "SELECT id, abs(n) AS x, n::text AS y FROM t")
    with Database(dsn) as database, database.session() as session:
        for query, kind in (
            ("SELECT abs(n) AS x FROM t", "function"),
            ("SELECT n::text AS x FROM t", "type"),
            ('SELECT w COLLATE "C" AS x FROM t', "collation"),
        ):
            found = user_objects(session, query, ["public", "pg_catalog"])
            assert [one.kind for one in found] == [kind]
            assert user_objects(session, query, ["public"]) == ()


def test_a_role_without_temporary_objects(
    project: headrace.Headrace, sql: psycopg.Connection[Any]
) -> None:
    row = sql.execute("SELECT current_database()").fetchone()
    assert row is not None
    sql.execute(SHADOWS)
    sql.execute(f'REVOKE TEMPORARY ON DATABASE "{row[0]}" FROM public')
    sql.execute("CREATE ROLE narrow LOGIN")
    try:
        sql.execute("GRANT USAGE, CREATE ON SCHEMA headrace TO narrow")
        sql.execute("GRANT SELECT ON t TO narrow")
        with Database(project.dsn) as database, database.session() as session:
            session.execute("SET ROLE narrow")
            (found,) = user_objects(session, "SELECT lower(v) FROM t", ["public"])
            assert found.identity == "public.lower(character varying)"
            assert user_objects(session, "SELECT lower(w) FROM t", ["public"]) == ()
        left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'query_%'"
        assert sql.execute(left).fetchone() == (0,)
    finally:
        sql.execute("DROP OWNED BY narrow; DROP ROLE narrow")


def test_a_table_that_is_built_again_is_checked_again(
    project: headrace.Headrace, sql: psycopg.Connection[Any]
) -> None:
    """Until then it computes what it was created with."""
    put_tables(project, TableRequest("s", "SELECT id, lower(v) AS x FROM t"))
    engine = project._engine
    state = engine.catalog.state()
    (table,) = state.stream_tables
    again = [TableSpec("again", old=table)]
    plan(engine, state, again)
    sql.execute(SHADOWS)
    with pytest.raises(headrace.UserError) as caught:
        plan(engine, state, again)
    assert caught.value.code == "unsupported-function"
    sql.execute("DROP FUNCTION lower(varchar)")
    plan(engine, state, again)


def test_a_text_that_postgresql_cannot_read_any_more(
    project: headrace.Headrace, sql: psycopg.Connection[Any]
) -> None:
    """A renamed table is still the one that was captured."""
    put_tables(project, TableRequest("s", "SELECT id, lower(v) AS x FROM t"))
    engine = project._engine
    state = engine.catalog.state()
    (table,) = state.stream_tables
    sql.execute("ALTER TABLE t RENAME TO renamed")
    (making,) = plan(engine, state, [TableSpec("again", old=table)]).planned_tables
    assert making.table.query == table.query
