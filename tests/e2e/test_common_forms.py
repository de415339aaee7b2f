"""Forms of queries that PostgreSQL answers in one way only, written as people write them."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

import headrace
from tests.e2e.oracle import assert_followed, assert_served

pytestmark = pytest.mark.e2e

QUERIES: dict[str, str] = {
    "constant_in_order": "SELECT 'a' AS ch, id FROM sales UNION ALL SELECT 'b', id FROM sales"
    " ORDER BY ch, id LIMIT 4",
    "cast_in_order": "SELECT id::text AS t FROM sales ORDER BY t DESC LIMIT 2",
    "char_or_null": "SELECT id, CASE WHEN id > 1 THEN code END AS c, coalesce(code, '') AS d,"
    " coalesce(code, 'none ') AS e, coalesce(code, 'xyz') || '|' AS f FROM sales",
    "char_in_union": "SELECT code AS c FROM sales UNION ALL SELECT NULL FROM sales"
    " UNION ALL SELECT 'q ' FROM sales",
    "char_in_groups": "SELECT CASE WHEN id > 1 THEN code END AS c, count(*) AS n, min(code) AS l,"
    " max(code) AS h FROM sales GROUP BY CASE WHEN id > 1 THEN code END",
    "casts": "SELECT id::varchar AS a, amount::varchar(3) AS b, sold::char(7) AS c,"
    " concat(coalesce(code, 'q'), '|') AS d, coalesce(code, 'q ') LIKE 'q%' AS e FROM sales",
    "rows_in_order": "SELECT a.id, b.id AS other FROM sales a JOIN sales b"
    " ON (a.region, a.id) < (b.region, b.id)",
    "one_row": "SELECT count(*) AS n, sum(amount) AS s FROM sales LIMIT 100",
    "arrays_of_queries": "SELECT a.id, ARRAY(SELECT b.id FROM sales b WHERE b.region = a.region"
    " ORDER BY b.amount DESC NULLS LAST, b.id) AS peers FROM sales a",
    "arrays_of_fractions": "SELECT region,"
    " percentile_disc(ARRAY[0.25, 0.5, NULL]) WITHIN GROUP (ORDER BY amount) AS d,"
    " percentile_cont(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY amount DESC) AS c"
    " FROM sales GROUP BY region",
    "behind_an_offset": "SELECT id FROM sales a WHERE EXISTS (SELECT code FROM sales b"
    " WHERE b.region = a.region ORDER BY b.sold OFFSET 1)",
    "least_of_casts": "SELECT min(sold::text) AS first, max(id::text) AS last FROM sales",
}

CHANGES = (
    "INSERT INTO sales VALUES (10, 'x', 5, '2024-05-01', 'north'), (11, NULL, NULL, NULL, NULL)",
    "UPDATE sales SET code = 'yy', amount = amount + 1 WHERE id IN (1, 10)",
    "DELETE FROM sales WHERE id IN (2, 11)",
    "DELETE FROM sales",
)


SALES = """
CREATE TABLE sales (id int PRIMARY KEY, code char(3), amount numeric(9,2), sold date,
    region varchar(10));
INSERT INTO sales VALUES (1, 'x', 10, '2024-01-01', 'north'), (2, 'xy', 2.5, NULL, 'south'),
    (3, NULL, -1, '2023-12-31', NULL), (9, 'zzz', 7, '2024-01-02', 'north')
"""


def test_they_stay_what_postgresql_says(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute(SALES)
    project.create_stream_tables(
        {name: {"query": query, "refresh_mode": "DIFFERENTIAL"} for name, query in QUERIES.items()}
    )
    for change in ("", *CHANGES):
        if change:
            sql.execute(change)
        for name in QUERIES:
            if change:
                assert_followed(project.refresh(name))
            assert_served(project, sql, name)


def test_a_branch_that_is_never_true_costs_nothing(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute(SALES)
    sql.execute("CREATE TABLE returns (id int PRIMARY KEY); INSERT INTO returns VALUES (1)")
    project.create_stream_table(
        "ids",
        "SELECT id FROM sales UNION ALL SELECT id FROM returns WHERE 1 = 2",
        refresh_mode="DIFFERENTIAL",
    )
    assert_served(project, sql, "ids")
    sql.execute("INSERT INTO returns VALUES (2)")
    done = project.refresh("ids")
    assert (done.rows_inserted, done.rows_deleted, done.spark_jobs) == (0, 0, 0)
    sql.execute("DELETE FROM sales WHERE id = 1; DELETE FROM returns WHERE id = 1")
    assert project.refresh("ids").mode == "DIFFERENTIAL"
    assert_served(project, sql, "ids")
    assert project.verify("ids", source=True).equal
    assert project.reinit("ids").mode == "FULL"
    assert_served(project, sql, "ids")


# Each query, and the same with the order of the values written out.
UNORDERED: dict[str, tuple[str, str]] = {
    "few": (
        "SELECT region, amount FROM sales LIMIT 2",
        'SELECT region, amount FROM sales ORDER BY region COLLATE "C", amount LIMIT 2',
    ),
    "rest": ("SELECT id FROM sales OFFSET 2", "SELECT id FROM sales ORDER BY id OFFSET 2"),
    "gathered": (
        "SELECT region, array_agg(amount) AS a, string_agg(region, '+') AS s FROM sales GROUP BY 1",
        "SELECT region, array_agg(amount ORDER BY amount) AS a, string_agg(region, '+') AS s"
        " FROM sales GROUP BY 1",
    ),
}


def test_an_order_that_is_not_written_is_that_of_the_values(
    project: headrace.Headrace, sql: psycopg.Connection
) -> None:
    sql.execute(SALES)
    for name, (query, _) in UNORDERED.items():
        with pytest.raises(headrace.UserError, match="ORDER BY"):
            project.create_stream_table(name, query)
        project.create_stream_table(name, query, unspecified_order="by_value")
    for change in ("", *CHANGES):
        if change:
            sql.execute(change)
        for name, (_, ordered) in UNORDERED.items():
            if change:
                project.refresh(name)
            served = Counter(map(repr, sql.execute(f"SELECT * FROM {name}")))
            assert served == Counter(map(repr, sql.execute(ordered))), (name, change)
            assert project.verify(name, source=True).equal
