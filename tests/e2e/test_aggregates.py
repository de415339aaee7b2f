"""Aggregates of every kind kept fresh: as PostgreSQL answers them after every change."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

VIEWS = {
    "whole": "SELECT g, string_agg(t, ',' ORDER BY x DESC, t) AS t, sum(x) AS s, corr(x, n) AS c,"
    " percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS m, mode() WITHIN GROUP (ORDER BY x) AS f,"
    " count(DISTINCT t) AS d FROM a GROUP BY g",
    "values": "SELECT g, count(DISTINCT x) AS c, stddev(DISTINCT x) AS s FROM a GROUP BY g",
    "arrays": "SELECT g, array_agg(n ORDER BY x, t DESC) AS n,"
    " (array_agg(t ORDER BY x, t))[1] AS f,"
    " array_agg(DISTINCT x ORDER BY x DESC) FILTER (WHERE n > 1) AS x FROM a GROUP BY g",
    "elements": "SELECT e, count(*) AS c, tags"
    " FROM (SELECT ARRAY[t, lower(t), NULL] AS tags FROM a) AS s, unnest(tags) AS e"
    " WHERE e <> ALL (ARRAY['b'] || tags[9]) OR 'c' = ANY (tags) GROUP BY e, tags",
    "sets": "SELECT g, x, grouping(g, x) AS m, count(*) AS c, max(t) AS t FROM a"
    " GROUP BY CUBE (g, x) HAVING count(*) > 1",
}
STEPS = (
    "INSERT INTO a VALUES (1, 3, 2.25, 'a'), (1, 3, 2.25, 'a'), (NULL, -1, NULL, 'z')",
    # An update of the key touches two groups.
    "UPDATE a SET g = 2, t = upper(t) WHERE g = 1 AND x > 3",
    "DELETE FROM a",
)


def test_every_change(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    sql.execute('CREATE TABLE a (g int, x int, n numeric(8,2), t text COLLATE "C")')
    sql.execute(
        "INSERT INTO a SELECT i % 3, i % 5, i / 4.0, chr(97 + i % 4) FROM generate_series(1, 20) i"
    )
    project.create_stream_tables(VIEWS)
    for statement in STEPS:
        sql.execute(statement)
        for name in VIEWS:
            assert project.refresh(name).mode == "DIFFERENTIAL", (name, statement)
            assert_served(project, sql, name)
    for name in VIEWS:
        assert project.verify(name).equal, name
