"""Joins whose equalities follow from each other, or are between expressions."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def looked_up(project: headrace.Headrace) -> None:
    """Rows are looked up by keys, however few there are."""
    project.set("access_path", "scan")


def test_one_column_equals_two_of_another_table(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE t (id int, y int); CREATE TABLE m (id int, tid int)")
    sql.execute("INSERT INTO t SELECT i, i + i % 2 FROM generate_series(1, 40) i")
    sql.execute("INSERT INTO m SELECT i, i % 30 FROM generate_series(1, 60) i")
    project.create_stream_table(
        "pairs", "SELECT t.id, m.id AS mid FROM t, m WHERE t.id = m.tid AND t.y = m.tid"
    )
    for change in (
        "DELETE FROM t WHERE id < 9",
        "UPDATE t SET y = id WHERE id IN (11, 13)",
        "INSERT INTO m VALUES (9999, 13), (9998, NULL)",
        "DELETE FROM t",
    ):
        sql.execute(change)
        assert project.refresh("pairs").mode == "DIFFERENTIAL"
        assert_served(project, sql, "pairs")


FILMS = """
CREATE TABLE title (id int PRIMARY KEY, title text, kind_id int, production_year int);
CREATE TABLE kind_type (id int PRIMARY KEY, kind text);
CREATE TABLE movie_companies (id int PRIMARY KEY, movie_id int, company_id int, note text);
CREATE TABLE company_name (id int PRIMARY KEY, name text, country_code text);
CREATE TABLE movie_keyword (id int PRIMARY KEY, movie_id int, keyword_id int);
CREATE TABLE keyword (id int PRIMARY KEY, keyword text);
CREATE TABLE movie_link (id int PRIMARY KEY, movie_id int, linked_movie_id int);
INSERT INTO title SELECT i, 'title ' || i, i % 3, 1990 + i % 30 FROM generate_series(1, 60) i;
INSERT INTO kind_type VALUES (0, 'movie'), (1, 'episode'), (2, 'series');
INSERT INTO movie_companies
    SELECT i, 1 + i * 7 % 60, 1 + i % 8, CASE WHEN i % 5 = 0 THEN 'note' END
    FROM generate_series(1, 80) i;
INSERT INTO company_name
    SELECT i, 'company ' || i, '[' || i % 4 || ']' FROM generate_series(1, 8) i;
INSERT INTO movie_keyword SELECT i, 1 + i * 11 % 60, i % 10 FROM generate_series(1, 80) i;
INSERT INTO keyword SELECT i, 'keyword ' || i FROM generate_series(0, 9) i;
INSERT INTO movie_link SELECT i, 1 + i * 13 % 60, 1 + i * 3 % 60 FROM generate_series(1, 50) i;
"""

# The graph of its equalities has cycles: each of them follows from the others.
CYCLIC = """
SELECT min(cn.name) AS company, min(t.title) AS title, count(*) AS n
FROM title AS t, kind_type AS kt, movie_companies AS mc, company_name AS cn,
     movie_keyword AS mk, keyword AS k, movie_link AS ml
WHERE kt.id = t.kind_id AND kt.kind <> 'series'
  AND t.id = mc.movie_id AND t.id = mk.movie_id AND t.id = ml.movie_id
  AND mc.movie_id = mk.movie_id AND mk.movie_id = ml.movie_id AND ml.movie_id = mc.movie_id
  AND cn.id = mc.company_id AND cn.country_code <> '[1]'
  AND k.id = mk.keyword_id AND k.keyword LIKE '%1%'
  AND t.production_year > 1995 AND mc.note IS NULL
"""


def test_a_cyclic_graph_of_equalities(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute(FILMS)
    project.create_stream_table("films", CYCLIC)
    assert_served(project, sql, "films")
    for change in (
        "DELETE FROM movie_keyword WHERE id % 7 = 0",
        "UPDATE title SET production_year = 1980 WHERE id % 10 = 1",
        "INSERT INTO movie_companies SELECT 5000 + i, i, 2, NULL FROM generate_series(1, 9) i",
        "UPDATE company_name SET name = 'a ' || name WHERE id = 2;"
        "DELETE FROM movie_link WHERE id < 9",
        "INSERT INTO title VALUES (9001, 'a title', 0, 2001);"
        "INSERT INTO movie_companies VALUES (9001, 9001, 2, NULL);"
        "INSERT INTO movie_keyword VALUES (9001, 9001, 1);"
        "INSERT INTO movie_link VALUES (9001, 9001, 1)",
        "UPDATE kind_type SET kind = 'series' WHERE id = 0",
    ):
        sql.execute(change)
        assert project.refresh("films").mode == "DIFFERENTIAL"
        assert_served(project, sql, "films")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.id AS other FROM a, b WHERE a.k = b.k - 1",
        "SELECT a.id, b.id AS other FROM a LEFT JOIN b ON a.k + 1 = b.k AND b.id > 1",
        "SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE 10 - b.k = a.k)",
        "SELECT a.id, b.id AS other FROM a FULL JOIN b ON a.d + 7 = b.d",
        "SELECT a.id, b.id AS other FROM a JOIN b ON a.x || '!' = b.x",
    ],
    ids=["inner", "left", "anti", "full", "text"],
)
def test_an_equality_between_expressions(
    project: headrace.Headrace, sql: psycopg.Connection, query: str
) -> None:
    for name in "ab":
        sql.execute(f"CREATE TABLE {name} (id int, k int, d date, x text)")
        sql.execute(
            f"INSERT INTO {name} SELECT i, i, date '2024-01-01' + 7 * i, repeat('!', i)"
            " FROM generate_series(1, 12) i"
        )
    project.create_stream_table("pairs", query)
    for change in (
        "UPDATE a SET k = k + 2, d = d + 14, x = x || '!' WHERE id IN (3, 4)",
        "UPDATE b SET k = k - 1, d = d - 7, x = 'x' WHERE id IN (7, 8)",
        "INSERT INTO a VALUES (20, NULL, NULL, NULL), (21, 3, '2024-01-15', '!!');"
        "DELETE FROM b WHERE id = 5",
    ):
        sql.execute(change)
        assert project.refresh("pairs").mode == "DIFFERENTIAL"
        assert_served(project, sql, "pairs")


def test_a_key_that_overflows_has_no_match(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute("CREATE TABLE a (k int); CREATE TABLE b (k int)")
    sql.execute("INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (2), (-2147483648)")
    project.create_stream_table("pairs", "SELECT a.k FROM a, b WHERE a.k = b.k - 1")
    sql.execute("INSERT INTO a VALUES (2147483647); INSERT INTO b VALUES (3), (-2147483648)")
    assert project.refresh("pairs").mode == "DIFFERENTIAL"
    assert sorted(sql.execute("SELECT k FROM pairs").fetchall()) == [(1,), (2,)]
