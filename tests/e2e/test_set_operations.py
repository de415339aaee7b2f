"""Set operations, constants and functions that give rows, maintained through a project."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.types.string import TextLoader

import headrace
from tests.e2e.oracle import assert_served

pytestmark = pytest.mark.e2e

SETS = " UNION ALL ".join(
    f"SELECT '{name}' AS operation, x FROM (SELECT x FROM l {name} SELECT x FROM r) AS s"
    for name in ("INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
)
ROWS = """
SELECT 'constant' AS origin, '0' AS item UNION ALL (SELECT 'once', 'a' UNION SELECT 'once', 'b')
UNION ALL SELECT v.kind, v.item FROM l, LATERAL (VALUES ('x', x::text), ('t', t)) AS v (kind, item)
UNION ALL SELECT 'series', g::text FROM l, generate_series(1, l.x) AS g
UNION ALL SELECT 'part', coalesce(p, 'none') FROM l LEFT JOIN string_to_table(l.t, ',') AS p ON true
UNION ALL SELECT e.key, e.value::text FROM l, jsonb_each(l.j) AS e
"""
STEPS = (
    'INSERT INTO l VALUES (1, \'a,b\', \'{"n": 1.50, "s": ["a", {}]}\'), (1, NULL, NULL)',
    "INSERT INTO r VALUES (1), (NULL), (NULL);"
    " INSERT INTO l VALUES (NULL, '', '{}'), (3, 'c', NULL)",
    "INSERT INTO r VALUES (1), (1); UPDATE l SET t = 'c,,d', x = 2 WHERE x = 3",
    "DELETE FROM l WHERE ctid = (SELECT min(ctid) FROM l WHERE x = 1); DELETE FROM r",
    "DELETE FROM l",
)


def test_values_come_and_go_on_both_sides(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    """Both start over empty tables: what the query itself spells out is there all the same."""
    sql.adapters.register_loader("jsonb", TextLoader)
    sql.execute("CREATE TABLE l (x int, t text, j jsonb); CREATE TABLE r (x int)")
    project.create_stream_table("sets", SETS)
    project.create_stream_table("made", ROWS)
    for step in ("", *STEPS):
        if step:
            sql.execute(step)
            assert project.refresh("made").mode == "DIFFERENTIAL"
            assert project.refresh("sets").mode == "DIFFERENTIAL"
        assert_served(project, sql, "sets")
        assert_served(project, sql, "made")
    assert project.verify("sets").equal
    assert project.verify("made").equal
