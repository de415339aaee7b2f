"""The part of a query that reads only what is known, in the user's own text."""

from __future__ import annotations

import pytest

from headrace.query import first_names, table_names
from headrace.statements.nonrecursive_term import beginning, first_branch

UNKNOWN = "later"


def reads_unknown(text: str) -> bool:
    return any(name == UNKNOWN for _, name in table_names(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM s", "SELECT a FROM s"),
        ("SELECT a FROM later", None),
        ("SELECT a FROM s UNION SELECT a FROM later ORDER BY 1;", "SELECT a FROM s"),
        ("SELECT a FROM later UNION ALL (SELECT a FROM s LIMIT 1)", "(SELECT a FROM s LIMIT 1)"),
        ("((SELECT a FROM s) UNION (SELECT a FROM later))", "(SELECT a FROM s)"),
        ("VALUES (1, 'UNION') UNION DISTINCT TABLE later", "VALUES (1, 'UNION')"),
        (
            "SELECT a FROM s UNION SELECT a FROM later UNION SELECT b FROM t -- the end",
            "SELECT a FROM s UNION ALL SELECT b FROM t",
        ),
        ("SELECT 1 AS a UNION SELECT a FROM s WHERE EXISTS (TABLE later)", "SELECT 1 AS a"),
        ("SELECT a FROM s UNION SELECT a FROM t INTERSECT SELECT a FROM later", "SELECT a FROM s"),
        ("SELECT a FROM s UNION SELECT a FROM t EXCEPT SELECT a FROM later", None),
        ("SELECT a AS limit FROM s UNION SELECT a FROM later", "SELECT a AS limit FROM s"),
        ("SELECT a FROM later UNION SELECT a AS order FROM s", "SELECT a AS order FROM s"),
        ("SELECT s.union FROM s UNION TABLE later", "SELECT s.union FROM s"),
        (
            'SELECT a AS except, a AS "UNION" FROM s UNION TABLE later',
            'SELECT a AS except, a AS "UNION" FROM s',
        ),
        (
            "SELECT n FROM unnest(a) WITH ORDINALITY AS u (a, n) UNION TABLE later LIMIT 3",
            "SELECT n FROM unnest(a) WITH ORDINALITY AS u (a, n)",
        ),
        ("(WITH q AS (TABLE s) TABLE q UNION TABLE later)", None),
        ("WITH later AS (SELECT 1 AS a) TABLE later", "WITH later AS (SELECT 1 AS a) TABLE later"),
        (
            "WITH s AS (SELECT a FROM s UNION TABLE later) SELECT a FROM s",
            "WITH s AS (SELECT a FROM s)  SELECT a FROM s",
        ),
        (
            "WITH RECURSIVE r (x) AS MATERIALIZED (SELECT a FROM s UNION SELECT x FROM r, later),"
            " q AS (TABLE later) SELECT x FROM r UNION SELECT a FROM q",
            "WITH RECURSIVE r (x) AS MATERIALIZED (SELECT a FROM s) SELECT x FROM r",
        ),
    ],
)
def test_beginning(text: str, expected: str | None) -> None:
    assert beginning(text, reads_unknown) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a, b AS c, count(*) FROM later UNION SELECT 1, 2, 3", ("a", "c", "count")),
        ("WITH q AS (TABLE s) SELECT x::text FROM q UNION SELECT y FROM later", ("x",)),
        ("SELECT * FROM later UNION SELECT y FROM s", None),
    ],
)
def test_the_first_branch_gives_the_names(text: str, names: tuple[str, ...] | None) -> None:
    assert first_names(first_branch(text)) == names
