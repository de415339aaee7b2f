"""Windows, DISTINCT ON and LIMIT: rows, names and types as in PostgreSQL, on rows with ties.

PostgreSQL leaves it to chance which of several peers comes first. So queries to which that matters
sort by a key in the end; the order that we add ourselves is tested beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import UserError
from headrace.plan.evaluate import evaluate
from headrace.plan.operators import Operator, Top, Window
from headrace.query import bind
from headrace.query.bind import ORDER_NOTICE
from headrace.query.ordering import TIES_NOTICE
from tests.forms import examples
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.events import TABLES, Events, read


@pytest.fixture
def events(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        for table in TABLES:
            connection.execute(table.ddl)
            places = ", ".join(["%s"] * len(table.columns))
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {table.name} VALUES ({places})", table.rows)
        yield connection


def check(connection: psycopg.Connection[Any], query: str) -> Operator:
    """The query as PostgreSQL answers it; gives the plan."""
    bound = bind(query, Events())
    types = [column.type for column in bound.plan.columns]
    cursor = connection.execute(query)
    assert cursor.description is not None
    assert tuple(column.name for column in cursor.description) == bound.names, query
    rows = bag(cursor.fetchall(), types)
    assert postgres_types(connection, query) == ours(connection, types), query
    assert bag(evaluate(bound.written, read).elements(), types) == rows, query
    assert bag(evaluate(bound.plan, read).elements(), types) == rows, query
    if bound.key is not None:
        keys = Counter(tuple(row[i] for i in bound.key) for row in rows.elements())
        assert all(times == 1 for times in keys.values()), query
    return bound.plan


WINDOWS = """
SELECT id, row_number() OVER (PARTITION BY k ORDER BY x DESC, id) FROM events
SELECT id, rank() OVER (PARTITION BY k ORDER BY x), dense_rank() OVER (ORDER BY t NULLS FIRST) FROM events
SELECT id, percent_rank() OVER w, cume_dist() OVER w FROM events WINDOW w AS (PARTITION BY k ORDER BY f)
SELECT id, ntile(3) OVER (PARTITION BY k ORDER BY id), ntile(NULL) OVER () AS nothing FROM events
SELECT id, lag(x) OVER w, lead(x, 2) OVER w AS b, lag(n, 1, 7) OVER w AS c, lead(t, 0, 'z') OVER w AS d FROM events WINDOW w AS (PARTITION BY k ORDER BY id)
SELECT id, lag(x, -1, id) OVER (ORDER BY id), lead(x, NULL) OVER (ORDER BY id) FROM events
SELECT id, first_value(x) OVER w, last_value(x) OVER w, nth_value(x, 2) OVER w FROM events WINDOW w AS (PARTITION BY k ORDER BY id)
SELECT id, first_value(x) OVER (PARTITION BY k ORDER BY n, x), last_value(x) OVER (PARTITION BY k ORDER BY n, x) FROM events
SELECT id, last_value(id) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM events
SELECT id, nth_value(t, 2) OVER (ORDER BY id GROUPS BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM events
SELECT id, count(*) OVER (), sum(x) OVER (PARTITION BY k), avg(n) OVER (ORDER BY x) AS a, min(t) OVER (PARTITION BY x), max(d) OVER (ORDER BY d) FROM events
SELECT id, sum(big) OVER (ORDER BY id), avg(id) OVER (PARTITION BY k), sum(f) OVER (PARTITION BY k) AS s FROM events
SELECT id, count(*) FILTER (WHERE x > 0) OVER (PARTITION BY k), sum(x) FILTER (WHERE t = 'a') OVER (ORDER BY x) FROM events
SELECT id, bool_or(x > 1) OVER (PARTITION BY k), stddev(x) OVER (PARTITION BY k) FROM events
SELECT id, string_agg(t, '-') OVER (PARTITION BY k ORDER BY x, id), string_agg(t, n::int::text) OVER (ORDER BY id ROWS 3 PRECEDING) AS b FROM events
SELECT id, bit_xor(x) OVER (PARTITION BY k ORDER BY t), regr_count(x, id) OVER (ORDER BY x), covar_pop(x, id) OVER (PARTITION BY k) FROM events
SELECT id, sum(x) OVER w, count(*) OVER (w ROWS 2 PRECEDING) FROM events WINDOW w AS (PARTITION BY k ORDER BY id), v AS (w RANGE UNBOUNDED PRECEDING)
SELECT id, sum(x) OVER (v) FROM events WINDOW w AS (PARTITION BY k), v AS (w ORDER BY x)
SELECT id, sum(x) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), sum(x) OVER (ORDER BY x DESC RANGE 2 PRECEDING) AS b FROM events
SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN 1.505 PRECEDING AND CURRENT ROW), count(*) OVER (ORDER BY f RANGE BETWEEN 1 PRECEDING AND 1.5 FOLLOWING) AS b FROM events
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND INTERVAL '2 days' FOLLOWING), count(*) OVER (ORDER BY d DESC RANGE BETWEEN '1 month' PRECEDING AND CURRENT ROW) AS b FROM events
SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL '1 day 24:00' PRECEDING AND INTERVAL '1' DAY FOLLOWING) FROM events
SELECT id, count(*) OVER (ORDER BY big RANGE BETWEEN 9000000000000000000 PRECEDING AND 9223372036854775807 FOLLOWING) FROM events
SELECT id, count(*) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING), sum(x) OVER (ORDER BY x GROUPS 2 PRECEDING) AS b FROM events
SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING), sum(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING) FROM events
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW), count(*) OVER (ORDER BY x RANGE UNBOUNDED PRECEDING EXCLUDE GROUP) FROM events
SELECT id, max(x) OVER (ORDER BY k, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES), count(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM events
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS a, rank() OVER (PARTITION BY x, k ORDER BY t) AS b, sum(x) OVER (PARTITION BY t) AS c FROM events
SELECT k, sum(x) AS s, sum(sum(x)) OVER (ORDER BY k) AS running, rank() OVER (ORDER BY count(*) DESC) FROM events GROUP BY k
SELECT k, count(*) OVER () FROM events GROUP BY k HAVING count(*) > 3
SELECT DISTINCT k, count(*) OVER (PARTITION BY k) FROM events
SELECT 1 + 2 * row_number() OVER (ORDER BY id) AS odd, CASE WHEN lag(x) OVER (ORDER BY id) IS NULL THEN 'none' ELSE t END FROM events
SELECT id, sum(x + 1) OVER (PARTITION BY coalesce(k, 0) % 2 ORDER BY -x, id) FROM events
SELECT k, x, row_number() OVER (PARTITION BY k, x ORDER BY k) FROM pairs
SELECT k, x, rank() OVER (ORDER BY k DESC NULLS LAST), count(*) OVER (PARTITION BY x) FROM pairs
SELECT id, r FROM (SELECT id, k, rank() OVER (PARTITION BY k ORDER BY x DESC) AS r FROM events) q WHERE r <= 2 AND k = 1
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM events) q WHERE n = 1
SELECT a.id, b.r FROM events a JOIN (SELECT id, dense_rank() OVER (ORDER BY x) AS r FROM events) b ON b.r = a.id
SELECT id, first_value(x) OVER (ORDER BY x, n, f, t RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM events
"""  # noqa: E501
TOPS = """
SELECT id, x FROM events ORDER BY x DESC, id LIMIT 5
SELECT id, x FROM events ORDER BY x DESC NULLS LAST, 1 LIMIT 5 OFFSET 3
SELECT id FROM events ORDER BY n, id OFFSET 20
SELECT id FROM events ORDER BY x + coalesce(k, 0), id DESC LIMIT 2 + 1
SELECT x FROM events ORDER BY x FETCH FIRST 4 ROWS WITH TIES
SELECT x FROM events ORDER BY x DESC OFFSET 2 FETCH NEXT 3 ROWS WITH TIES
SELECT x FROM events ORDER BY x OFFSET 23 FETCH NEXT 5 ROWS WITH TIES
SELECT id FROM events ORDER BY id FETCH FIRST ROW ONLY
SELECT id FROM events LIMIT ALL
SELECT id FROM events LIMIT NULL OFFSET 0
SELECT id FROM events LIMIT 0
SELECT id FROM events ORDER BY x OFFSET 3 FETCH FIRST 0 ROWS WITH TIES
SELECT x AS id, k FROM events ORDER BY id, k, 1 LIMIT 7
SELECT id AS x FROM events ORDER BY events.x, id LIMIT 4
SELECT k, sum(x) FROM events GROUP BY k ORDER BY sum(x) DESC, k LIMIT 2
SELECT k FROM events GROUP BY k ORDER BY max(id) LIMIT 2
SELECT DISTINCT x FROM events ORDER BY x LIMIT 3
SELECT id FROM events ORDER BY row_number() OVER (ORDER BY t, id) LIMIT 4
SELECT DISTINCT ON (k) k, id, x FROM events ORDER BY k, x DESC, id
SELECT DISTINCT ON (k, x) id FROM events ORDER BY x, k DESC, id
SELECT DISTINCT ON (1) k, id FROM events ORDER BY k, 2
SELECT DISTINCT ON (k % 2, x) x, k, id FROM events ORDER BY k % 2, x, id LIMIT 3
SELECT DISTINCT ON (k) k FROM events
SELECT DISTINCT ON (k, x) k, x FROM events ORDER BY x
SELECT id FROM events WHERE x > 0 UNION ALL SELECT k FROM events ORDER BY 1 DESC LIMIT 6
(SELECT id FROM events ORDER BY x, id LIMIT 2) UNION ALL (SELECT id FROM events ORDER BY id DESC LIMIT 1)
(SELECT id, x FROM events) ORDER BY k, id LIMIT 3
(SELECT id FROM events ORDER BY id) LIMIT 3
SELECT count(*), sum(id) FROM (SELECT id FROM events ORDER BY x, id LIMIT 10 OFFSET 1) q
WITH q AS (SELECT id, k FROM events ORDER BY x DESC, id LIMIT 8) SELECT k, count(*) FROM q GROUP BY k
SELECT k, x FROM pairs ORDER BY k, x LIMIT 9
SELECT id FROM (SELECT DISTINCT ON (k) id, k FROM events ORDER BY k, id) q WHERE k = 2
"""  # noqa: E501


@pytest.mark.postgres
def test_windows(events: psycopg.Connection[Any]) -> None:
    for query in WINDOWS.strip().splitlines():
        assert find(check(events, query), Window), query


@pytest.mark.postgres
def test_tops(events: psycopg.Connection[Any]) -> None:
    for query in TOPS.strip().splitlines():
        plan = check(events, query)
        limited = not any(word in query for word in ("LIMIT ALL", "LIMIT NULL", "LIMIT 0", " 0 R"))
        assert bool(find(plan, Top)) == limited, query


def find(plan: Operator, kind: type[Operator]) -> list[Operator]:
    found = [plan] if isinstance(plan, kind) else []
    return found + [each for child in plan.children for each in find(child, kind)]


CALLS = (
    "row_number() OVER ({k} ORDER BY {o}, id)",
    "rank() OVER ({k} ORDER BY {o})",
    "dense_rank() OVER ({k} ORDER BY {o})",
    "percent_rank() OVER ({k} ORDER BY {o})",
    "cume_dist() OVER ({k} ORDER BY {o})",
    "ntile({i} + 1) OVER ({k} ORDER BY {o}, id)",
    "lag({c}, {i}) OVER ({k} ORDER BY {o}, id)",
    "lead({c}, {i}, {c}) OVER ({k} ORDER BY {o}, id)",
    "first_value({c}) OVER ({k} ORDER BY {o}, id {f})",
    "last_value({c}) OVER ({k} ORDER BY {o}, id {f})",
    "nth_value({c}, {i} + 1) OVER ({k} ORDER BY {o}, id {f})",
    "count({c}) OVER ({k})",
    "count(*) OVER ({k} ORDER BY {o} {p})",
    "sum({v}) OVER ({k} ORDER BY {o} {p})",
    "min({v}) OVER ({k} ORDER BY {o}, id {f})",
    "max(t) OVER ({k} ORDER BY {o} {p})",
    "avg({v}) FILTER (WHERE x >= 0) OVER ({k} ORDER BY {o}, id {f})",
    "sum(x) OVER ({k} ORDER BY x RANGE BETWEEN {i} PRECEDING AND {i} + 1 FOLLOWING {e})",
)
STARTS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW", "0 PRECEDING")
ENDS = ("CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING", "UNBOUNDED FOLLOWING")


@st.composite
def calls(draw: st.DrawFn) -> str:
    def one(*options: str) -> str:
        return draw(st.sampled_from(options))

    bounds = f"BETWEEN {one(*STARTS)} AND {one(*ENDS)}"
    excluded = one("", "", "EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES")
    return one(*CALLS).format(
        k=one("", "PARTITION BY k", "PARTITION BY k, t", "PARTITION BY x % 2"),
        o=one("x", "x DESC", "n NULLS FIRST, t", "f DESC NULLS LAST", "d", "t DESC, k", "x + k"),
        c=one("id", "x", "n", "t", "d", "f"),
        v=one("x", "n", "id"),
        i=draw(st.integers(0, 2)),
        f=one("", f"ROWS {bounds} {excluded}", f"GROUPS {bounds} {excluded}"),
        # Nothing may distinguish peers.
        p=one("", f"GROUPS {bounds}", f"GROUPS {bounds} EXCLUDE GROUP"),
        e=excluded,
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    shown = draw(st.lists(calls(), min_size=1, max_size=3))
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(shown, 1))
    query = f"SELECT id, {columns} FROM events"
    around = draw(
        st.sampled_from(
            (
                "{q}",
                "SELECT c1, count(*) FROM ({q}) q GROUP BY c1",
                "SELECT DISTINCT c1 FROM ({q}) q",
                "SELECT id, c1 FROM ({q}) q WHERE id > 3 AND c1 IS NOT NULL",
                "{q} WHERE x <> 0 ORDER BY 2, id LIMIT 7 OFFSET 2",
                "SELECT c1 FROM ({q}) q ORDER BY c1 DESC FETCH FIRST 5 ROWS WITH TIES",
                "SELECT DISTINCT ON (c1) c1, id FROM ({q}) q ORDER BY c1, id DESC",
            )
        )
    )
    return around.format(q=query)


@pytest.mark.postgres
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(query=queries())
def test_random_window(query: str, events: psycopg.Connection[Any]) -> None:
    check(events, query)


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("SELECT id FROM events LIMIT 3", "unsupported-query", "LIMIT without ORDER BY"),
        ("SELECT id FROM events OFFSET 3", "unsupported-query", "OFFSET without ORDER BY"),
        ("SELECT id FROM events FETCH FIRST 2 ROWS WITH TIES", "invalid-query", "WITH TIES"),
        ("SELECT id FROM events ORDER BY 1 LIMIT -1", "invalid-query", "must not be negative"),
        ("SELECT id FROM events ORDER BY 1 LIMIT k", "unsupported-query", "not a constant"),
        ("SELECT id FROM events ORDER BY 1 LIMIT 1 / 0", "invalid-query", "division by zero"),
        ("SELECT id FROM events ORDER BY 2 LIMIT 1", "invalid-query", "position 2"),
        ("SELECT id FROM events ORDER BY 'x' LIMIT 1", "invalid-query", "non-integer constant"),
        ("SELECT id AS a, x AS a FROM events ORDER BY a LIMIT 1", "ambiguous-column", "ambiguous"),
        ("SELECT DISTINCT x FROM events ORDER BY k LIMIT 1", "invalid-query", "SELECT DISTINCT"),
        ("SELECT DISTINCT ON (k) x FROM events ORDER BY x", "invalid-query", "DISTINCT ON"),
        ("SELECT id FROM events UNION SELECT k FROM events ORDER BY id + 1 LIMIT 1",
         "invalid-query", "names or numbers"),
        ("(SELECT id FROM events ORDER BY 1 LIMIT 2) LIMIT 1", "invalid-query", "multiple LIMIT"),
        ("SELECT note FROM orders ORDER BY note LIMIT 1", "collation-unsupported", "collation C"),
        ("SELECT rank() OVER (ORDER BY note) FROM orders", "collation-unsupported", "collation C"),
        ("SELECT id FROM events WHERE rank() OVER () = 1", "invalid-query", "not allowed in WHERE"),
        ("SELECT sum(rank() OVER ()) FROM events", "invalid-query", "not allowed in"),
        ("SELECT rank() OVER (ORDER BY rank() OVER ()) FROM events",
         "invalid-query", "not allowed"),
        ("SELECT count(*) FROM events GROUP BY rank() OVER ()", "invalid-query", "not allowed"),
        ("SELECT rank() FILTER (WHERE x > 0) OVER () FROM events", "invalid-query", "FILTER"),
        ("SELECT count(DISTINCT x) OVER () FROM events", "invalid-query", "DISTINCT"),
        ("SELECT ntile(0) OVER () FROM events", "invalid-query", "greater than zero"),
        ("SELECT ntile(x) OVER () FROM events", "unsupported-query", "not a constant"),
        ("SELECT lag(x, k) OVER (ORDER BY id) FROM events", "unsupported-query", "not a constant"),
        ("SELECT lag(x, 1, 'z') OVER () FROM events", "unsupported-query", "cannot read"),
        ("SELECT rank(x) OVER () FROM events", "invalid-query", "does not take 1"),
        ("SELECT abs(x) OVER () FROM events", "unsupported-function", "abs OVER"),
        ("SELECT sum(x) OVER w FROM events", "invalid-query", '"w" does not exist'),
        ("SELECT sum(x) OVER (w PARTITION BY x) FROM events WINDOW w AS (ORDER BY k)",
         "invalid-query", "override PARTITION BY"),
        ("SELECT sum(x) OVER (w ORDER BY x) FROM events WINDOW w AS (ORDER BY k)",
         "invalid-query", "override ORDER BY"),
        ("SELECT sum(x) OVER (w ORDER BY x) FROM events WINDOW w AS (ROWS 1 PRECEDING)",
         "invalid-query", "frame clause"),
        ("SELECT sum(x) OVER () FROM events WINDOW w AS (), w AS ()",
         "invalid-query", "already defined"),
        ("SELECT sum(x) OVER (PARTITION BY k GROUPS 1 PRECEDING) FROM events",
         "invalid-query", "GROUPS mode"),
        ("SELECT sum(x) OVER (ORDER BY k, x RANGE 1 PRECEDING) FROM events",
         "invalid-query", "exactly one ORDER BY"),
        ("SELECT sum(x) OVER (ORDER BY x RANGE 1.5 PRECEDING) FROM events",
         "unsupported-query", "offset of numeric"),
        ("SELECT sum(x) OVER (ORDER BY d RANGE '1 month 1 day' PRECEDING) FROM events",
         "unsupported-query", "months and days"),
        ("SELECT sum(x) OVER (ORDER BY x ROWS -1 PRECEDING) FROM events",
         "invalid-query", "negative"),
        ("SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM events",
         "invalid-query", "preceding rows"),
        ("SELECT sum(x) OVER (ROWS UNBOUNDED FOLLOWING) FROM events",
         "invalid-query", "UNBOUNDED FOLLOWING"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) OVER () FROM events",
         "unsupported-query", "OVER"),
        ("SELECT bit_or(x) OVER (ORDER BY x ROWS 1 PRECEDING EXCLUDE GROUP) FROM events",
         "unsupported-function", "EXCLUDE"),
        ("SELECT row_number() FROM events", "invalid-query", "requires an OVER clause"),
    ],
)  # fmt: skip
def test_refusals(query: str, code: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        bind(query, Events())
    assert caught.value.code == code
    assert message in caught.value.message


def ties(query: str) -> list[tuple[str, ...]]:
    """The columns that decide between peers, for each call or top of the plan."""
    plan = bind(query, Events()).plan
    found = [call.ties for window in find(plan, Window) for call in window.calls]  # type: ignore[attr-defined]
    found += [top.ties for top in find(plan, Top)]  # type: ignore[attr-defined]
    return [tuple(key.column.id for key in keys) for keys in found]


OTHERS = ("n_1_c4", "f_1_c5", "t_1_c6", "d_1_c7", "big_1_c8")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # A key of the table would decide alone, but a user may drop it.
        ("SELECT row_number() OVER (ORDER BY x) FROM events", [("id_1_c1", "k_1_c2", *OTHERS)]),
        ("SELECT row_number() OVER (ORDER BY id) FROM events", [("k_1_c2", "x_1_c3", *OTHERS)]),
        ("SELECT rank() OVER (ORDER BY x) FROM events", [()]),
        (
            "SELECT sum(x) OVER (ORDER BY x ROWS 1 PRECEDING) AS s FROM events",
            [("id_1_c1", "k_1_c2", *OTHERS)] * 2,
        ),
        ("SELECT sum(x) OVER (ORDER BY x) AS s FROM events", [(), ()]),
        ("SELECT row_number() OVER (ORDER BY x) FROM pairs", [("k_1_c1",)]),
        ("SELECT k, row_number() OVER (ORDER BY sum(x)) FROM events GROUP BY k", [("k_1_c2",)]),
        ("SELECT k, id FROM events ORDER BY x LIMIT 1", [("k_v1", "id_v2")]),
        ("SELECT DISTINCT ON (k) k, id FROM events ORDER BY k", [("id_v2",)]),
    ],
)
def test_the_order_is_made_total(query: str, expected: list[tuple[str, ...]]) -> None:
    """By all columns of the rows, or as many as tell them apart."""
    assert ties(query) == expected
    notices = bind(query, Events()).notices
    assert notices == ((TIES_NOTICE,) if any(expected) else ())


def test_an_order_that_decides_nothing_is_ignored() -> None:
    bound = bind("SELECT id FROM events ORDER BY note", Events())
    assert bound.notices == (ORDER_NOTICE,)
    assert not find(bound.plan, Top)
    limited = bind("SELECT id FROM (SELECT id FROM events ORDER BY id LIMIT 1) q", Events())
    assert limited.notices == ()


def test_one_window_for_each_set_of_partition_columns() -> None:
    query = (
        "SELECT id, rank() OVER (PARTITION BY k, x ORDER BY id) AS a,"
        " count(*) OVER (PARTITION BY x, k) AS b, max(x) OVER () AS c FROM events"
    )
    keys = [window.keys for window in find(bind(query, Events()).plan, Window)]  # type: ignore[attr-defined]
    assert [len(each) for each in keys] == [0, 2]


def test_a_result_that_nobody_reads_is_not_computed() -> None:
    query = "SELECT id FROM (SELECT id, rank() OVER (ORDER BY x) FROM events) q"
    assert not find(bind(query, Events()).plan, Window)
