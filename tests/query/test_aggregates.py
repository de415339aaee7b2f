"""Every aggregate on random rows: as PostgreSQL computes it, whole and after a change.

The plan's definition, the state that a stage keeps, and what a change makes of that state must all
be PostgreSQL's answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.functions import AGGREGATES
from headrace.plan.evaluate import Bag, evaluate
from headrace.plan.operators import Scan
from headrace.plan.stages import cut_stages
from headrace.query import BoundQuery, bind
from headrace.refresh.plan import strategy
from tests.delta.stage_logs import filled, refreshed, shown, whole
from tests.delta.worlds import World
from tests.query.aggregate_answers import answer, database, differences
from tests.query.aggregate_calls import CALLS, Table, random_rows
from tests.query.column_types import ours as our_types
from tests.query.column_types import postgres_types

__all__ = ("database",)


def reading(rows: Bag) -> Callable[[Scan], Bag]:
    def read(scan: Scan) -> Bag:
        found: Bag = Counter()
        for row, weight in rows.items():
            found[tuple(row[int(name[1:]) - 1] for name, _ in scan.fields)] += weight
        return found

    return read


def maintained(bound: BoundQuery, before: Bag, after: Bag) -> tuple[Bag, Bag]:
    """What is shown after the first refresh, and after a change was taken in."""
    stages = cut_stages(bound.plan, "x")
    logs = filled(stages, World({"t": before}, {"t": before}))
    first = shown(stages[-1], whole(logs["x"]))
    logs, _ = refreshed(stages, World({"t": before}, {"t": after}), logs)
    return first, shown(stages[-1], whole(logs["x"]))


def test_every_aggregate_is_tried() -> None:
    text = " ".join(call for calls in CALLS for call in calls)
    missing = [f.name for f in AGGREGATES if f.syntax and f"{f.name}(" not in text]
    assert not missing


@pytest.mark.postgres
@pytest.mark.parametrize("grouped", [True, False], ids=["grouped", "global"])
@pytest.mark.parametrize("calls", CALLS, ids=lambda calls: calls[0])
def test_random_rows(
    calls: tuple[str, ...], grouped: bool, database: psycopg.Connection[Any]
) -> None:
    shown_ = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
    key, group = ("g, ", " GROUP BY g") if grouped else ("", "")
    query = f"SELECT {key}{shown_} FROM t{group}"
    bound = bind(query, Table())
    types = [column.type for column in bound.plan.columns]
    source = random.Random(query)
    before: Bag = Counter()
    assert postgres_types(database, query) == our_types(database, types)
    for size in (3, 9, 1, 0, 6):
        after = random_rows(source, size)
        right = answer(database, query, after)
        assert not differences(evaluate(bound.plan, reading(after)), right, types)
        assert not differences(evaluate(bound.written, reading(after)), right, types)
        first, second = maintained(bound, before, after)
        assert not differences(first, answer(database, query, before), types)
        assert not differences(second, right, types)
        before = after


GROUPS = (
    "ROLLUP (g)",
    "ROLLUP (g, o)",
    "CUBE (g, o)",
    "CUBE (g, (o, h))",
    "GROUPING SETS (g, o, ())",
    "GROUPING SETS ((g, o), (g), (), ())",
    "g, ROLLUP (o, h)",
    "ROLLUP (g), CUBE (o)",
    "GROUPING SETS (g, ROLLUP (o, h)), GROUPING SETS ((h), ())",
    "GROUPING SETS (GROUPING SETS (g, (o)), CUBE (h, g))",
    "DISTINCT ROLLUP (g, o), ROLLUP (g)",
    "ROLLUP (g), ROLLUP (g, o)",
    "(g, o), ()",
    "g, (o)",
    "ROLLUP (1, o)",
    "CUBE (g, o), g",
)


@pytest.mark.postgres
@pytest.mark.parametrize("group", GROUPS)
def test_grouping_sets(group: str, database: psycopg.Connection[Any]) -> None:
    columns = [name for name in ("g", "o", "h") if f"{name}" in group.replace("1", "g")]
    query = (
        f"SELECT {', '.join(columns)}, grouping({', '.join(columns)}) AS m, count(*) AS n,"
        f" sum(i) AS s, max(t) AS t, g + 1 AS k FROM t GROUP BY {group}"
        f" HAVING count(*) > 0 OR grouping({columns[0]}) = 1"
    )
    bound = bind(query, Table())
    source = random.Random(query)
    before: Bag = Counter()
    for size in (4, 8, 0, 5):
        after = random_rows(source, size)
        right = Counter(answer(database, query, after))
        assert evaluate(bound.plan, reading(after)) == right
        assert evaluate(bound.written, reading(after)) == right
        assert maintained(bound, before, after)[1] == right
        before = after


@pytest.mark.postgres
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS one FROM t GROUP BY ()",
        "SELECT 1 AS one FROM t HAVING count(*) > 2",
        "SELECT 1 AS one FROM t HAVING true",
        "SELECT 'x' AS x, 2 AS y FROM t GROUP BY g",
        "SELECT count(*) AS n FROM t WHERE false GROUP BY GROUPING SETS (g, (), ())",
        "SELECT g, o, 100 * sum(i) / nullif(count(i), 0) AS c, sum(i) + sum(i) AS d FROM t"
        " GROUP BY g, o",
        "SELECT g + 1 AS a, (g + 1) * 2 AS b, count(*) AS n FROM t GROUP BY g + 1",
        "SELECT CASE WHEN sum(i) > 3 THEN max(t) ELSE 'none' END AS c FROM t GROUP BY o",
        "SELECT f, count(*) AS n FROM t GROUP BY f",
        "SELECT DISTINCT f FROM t",
        "SELECT coalesce(g, 0) AS g, grouping(coalesce(g, 0)) AS m FROM t"
        " GROUP BY ROLLUP (coalesce(g, 0))",
        "SELECT count(*) AS n FROM (SELECT g, count(DISTINCT i) AS c FROM t GROUP BY CUBE (g)) AS q"
        " GROUP BY c",
    ],
)
def test_groups(query: str, database: psycopg.Connection[Any]) -> None:
    bound = bind(query, Table())
    source = random.Random(query)
    before: Bag = Counter()
    for size in (4, 9, 0, 5):
        after = random_rows(source, size)
        right = Counter(answer(database, query, after))
        assert evaluate(bound.plan, reading(after)) == right
        assert maintained(bound, before, after)[1] == right
        before = after


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("string_agg(t, ',')", "unsupported-query"),
        ("string_agg(i, ',' ORDER BY i)", "unsupported-function"),
        ("string_agg(t ORDER BY t)", "invalid-query"),
        ("string_agg(DISTINCT t, ',' ORDER BY i)", "invalid-query"),
        ("any_value(t)", "unsupported-function"),
        ("xmlagg(t)", "unsupported-function"),
        ("corr(i)", "invalid-query"),
        ("corr(t, i)", "unsupported-function"),
        ("sum(t)", "unsupported-function"),
        ("sum(*)", "invalid-query"),
        ("sum(DISTINCT *)", "invalid-query"),
        ("sum()", "invalid-query"),
        ("sum(i, b)", "invalid-query"),
        ("sum(count(i))", "invalid-query"),
        ("count(DISTINCT (i, b))", "unsupported-query"),
        ("mode(i)", "invalid-query"),
        ("mode() WITHIN GROUP (ORDER BY i, b)", "invalid-query"),
        ("sum(i) WITHIN GROUP (ORDER BY i)", "invalid-query"),
        ("percentile_cont(0.5)", "invalid-query"),
        ("percentile_cont(2) WITHIN GROUP (ORDER BY i)", "invalid-query"),
        ("percentile_cont(i) WITHIN GROUP (ORDER BY i)", "unsupported-query"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY t)", "unsupported-function"),
        ("bool_and(i)", "unsupported-function"),
        ("bit_and(n)", "unsupported-function"),
        ("grouping(i)", "invalid-query"),
        ("length(DISTINCT t)", "unsupported-function"),
        ("length(t) WITHIN GROUP (ORDER BY t)", "invalid-query"),
    ],
)
def test_refused(call: str, code: str) -> None:
    with pytest.raises(UserError) as caught:
        bind(f"SELECT {call} AS c FROM t GROUP BY g", Table())
    assert caught.value.code == code


def test_too_many_sets() -> None:
    with pytest.raises(UserError, match="grouping sets") as caught:
        bind("SELECT count(*) FROM t GROUP BY CUBE (g, h, i, b, n, o, d)", Table())
    assert caught.value.code == "unsupported-query"


ADDED = "changes are added to the stored sums of touched groups"
EXTREMA = "changes are added to touched groups; one that loses its MIN or MAX is recomputed"
WHOLE = "touched groups are recomputed: only all their rows determine "


@pytest.mark.parametrize(
    ("calls", "reasons"),
    [
        ("stddev(n), bool_or(o), avg(i)", [ADDED]),
        ("stddev(w)", [WHOLE + "stddev"]),
        ("corr(i, n), sum(i)", [WHOLE + "corr"]),
        ("string_agg(t, ',' ORDER BY t), bit_or(i)", [WHOLE + "string_agg, bit_or"]),
        ("sum(f)", ["touched groups are recomputed: float sums cannot be subtracted from"]),
        ("count(DISTINCT i)", [ADDED, ADDED]),
        ("count(DISTINCT i), max(i)", [ADDED, EXTREMA]),
        ("count(DISTINCT i), sum(i)", [WHOLE + "count DISTINCT"]),
    ],
)
def test_how_it_is_maintained(calls: str, reasons: list[str]) -> None:
    stages = cut_stages(bind(f"SELECT g, {calls} FROM t GROUP BY g", Table()).plan, "x")
    assert [strategy(stage) for stage in stages] == reasons
