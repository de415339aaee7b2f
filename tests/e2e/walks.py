"""Stream tables of walks of even and of odd length, which read each other."""

from __future__ import annotations

import psycopg
import pytest

import headrace
from tests.docs.cycles_page import SQL

# The same, as PostgreSQL computes it.
ORACLE = """
WITH RECURSIVE walks (src, dst, odd) AS (
    SELECT src, dst, true FROM edges
    UNION SELECT w.src, e.dst, NOT w.odd FROM walks w JOIN edges e ON e.src = w.dst
)
SELECT DISTINCT src, dst FROM walks WHERE odd = %s ORDER BY 1, 2
"""


@pytest.fixture
def walks(project: headrace.Headrace, sql: psycopg.Connection) -> headrace.Headrace:
    """Pairs between which there are walks of odd and of even length, as docs/cycles.md has them."""
    sources, tables, *_ = SQL
    sql.execute(sources)
    project.set("allow_circular", True)
    project.run(tables)
    return project


def assert_walks(project: headrace.Headrace, sql: psycopg.Connection) -> None:
    """Both hold what PostgreSQL computes, at one epoch."""
    for name, odd in (("even", False), ("odd", True)):
        served = sql.execute(f"SELECT src, dst FROM {name} ORDER BY 1, 2").fetchall()
        assert served == sql.execute(ORACLE, [odd]).fetchall(), name
    assert len({one.epoch for one in project.status() if one.name != "public.ends"}) == 1
