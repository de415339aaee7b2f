"""Windows and tops on Spark, over weighted rows and over ordinary bags: as they are defined."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from headrace.algebra.scalar import Column
from headrace.delta.differentiate import stage_change, stage_full
from headrace.plan.evaluate import Bag, evaluate
from headrace.plan.operators import Operator, Scan, SortKey, Top
from headrace.plan.stages import cut_stages
from headrace.query import bind
from headrace.render import inputs_of, render
from headrace.render.native import render_native
from headrace.spark.run import Input, Runner
from headrace.types import INTEGER
from tests.query.comparable_rows import plain
from tests.query.events import TABLES, Events, read

pytestmark = pytest.mark.spark

# Every function with every kind of frame that it is rendered differently for.
QUERIES = {
    "numbers": """
        SELECT id, row_number() OVER w AS a, rank() OVER w AS b, dense_rank() OVER w AS c,
            percent_rank() OVER w AS d, cume_dist() OVER w AS e, ntile(3) OVER w AS f,
            lag(x, 2, id) OVER w AS g, lead(n) OVER w AS h, rank() OVER (PARTITION BY k) AS i
        FROM events WINDOW w AS (PARTITION BY k ORDER BY f DESC, t)""",
    "rows": """
        SELECT id, sum(x) OVER w AS a, avg(n) OVER w AS b, min(t) OVER w AS c, max(f) OVER w AS d,
            first_value(d) OVER w AS e, last_value(t) OVER w AS f, nth_value(x, 2) OVER w AS g,
            count(*) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING) AS h
        FROM events
        WINDOW w AS (PARTITION BY k ORDER BY x ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)""",
    "peers": """
        SELECT id, sum(x) OVER w AS a, first_value(id) OVER w AS b, last_value(id) OVER w AS c,
            nth_value(id, 2) OVER w AS d, sum(big) OVER (w GROUPS 1 PRECEDING) AS e,
            last_value(id) OVER (w GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS f
        FROM events WINDOW w AS (PARTITION BY k ORDER BY x, n)""",
    "distances": """
        SELECT id, count(*) OVER (ORDER BY x DESC RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS a,
            count(*) OVER (ORDER BY n RANGE 1.505 PRECEDING) AS b,
            count(*) OVER (ORDER BY f RANGE BETWEEN 1 PRECEDING AND 1.5 FOLLOWING) AS c,
            count(*) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING
                AND '50 hours' FOLLOWING) AS d,
            count(*) OVER (ORDER BY d RANGE BETWEEN '1 month' PRECEDING AND CURRENT ROW) AS e,
            sum(x) OVER (ORDER BY big RANGE BETWEEN 9223372036854775807 PRECEDING
                AND UNBOUNDED FOLLOWING) AS f
        FROM events""",
    "exclusions": """
        SELECT id, sum(x) OVER (w EXCLUDE CURRENT ROW) AS a, max(n) OVER (w EXCLUDE TIES) AS b,
            first_value(id) OVER (w EXCLUDE GROUP) AS c, avg(n) OVER (w EXCLUDE GROUP) AS d,
            last_value(id) OVER (v RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) AS e,
            count(*) OVER (v GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS f
        FROM events WINDOW v AS (PARTITION BY k ORDER BY x)""",
    "all rows": """
        SELECT id, string_agg(t, '-') OVER (ORDER BY x) AS a, bit_xor(x) OVER (ORDER BY n) AS b,
            string_agg(t, n::int::text) OVER (PARTITION BY k ORDER BY x ROWS 2 PRECEDING) AS c,
            covar_pop(x, id) OVER (PARTITION BY k) AS d, stddev(n) OVER (ORDER BY x) AS e,
            var_samp(id::bigint) OVER (PARTITION BY k) AS f, regr_r2(id, x) OVER (ORDER BY x) AS g
        FROM events""",
    "copies": """
        SELECT k, x, row_number() OVER (ORDER BY k, x) AS a, row_number() OVER (ORDER BY x, k) AS b,
            row_number() OVER (PARTITION BY k ORDER BY x DESC) AS c, count(*) OVER () AS d
        FROM pairs""",
    "tops": """
        (SELECT k, x FROM pairs ORDER BY x DESC NULLS LAST LIMIT 7 OFFSET 3)
        UNION ALL (SELECT k, x FROM pairs ORDER BY x OFFSET 2 FETCH FIRST 4 ROWS WITH TIES)
        UNION ALL (SELECT DISTINCT ON (k) k, x FROM pairs ORDER BY k, x DESC)
        UNION ALL (SELECT k, x FROM pairs ORDER BY k, x OFFSET 20)""",
}
QUERIES["exclusions"] = QUERIES["exclusions"].replace("(w EXCL", "(v ROWS 2 PRECEDING EXCL")


@pytest.mark.parametrize("name", QUERIES)
def test_spark_gives_what_the_definition_says(name: str, runner: Runner) -> None:
    plan = bind(QUERIES[name], Events()).plan
    right = rows_of(evaluate(plan, read).elements(), plan)
    given = [rows_in(wanted.name, plan) for wanted in inputs_of(plan)]
    weighted = runner.collect(render(plan), given)
    assert isinstance(weighted, pa.Table)
    copies = (row for weight, *row in tuples(weighted) for _ in range(weight))
    assert rows_of(copies, plan) == right
    native = runner.collect(render_native(plan, tuple(c.id for c in plan.columns)), given)
    assert isinstance(native, pa.Table)
    assert rows_of(tuples(native), plan) == right


def rows_in(name: str, plan: Operator) -> Input:
    """A table as the weighted rows of a relation."""
    table = next(table for table in TABLES if name == f"{table.bound.relation}_after")
    columns = table.bound.columns
    fields = [("_weight", pa.int64())]
    fields += [(column.physical, column.type.arrow) for column in columns if column.type]
    schema = pa.schema(fields)
    return Input(name, schema, rows=weighted_rows(Counter(table.rows), schema))


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def rows_of(rows: Any, plan: Operator) -> Counter[tuple[Any, ...]]:
    types = [column.type for column in plan.columns]
    return Counter(tuple(plain(v, t) for v, t in zip(row, types, strict=True)) for row in rows)


K, X = Column("k", INTEGER), Column("x", INTEGER)
FIELDS = (("c1", K), ("c2", X))
BY_X = (SortKey(X, descending=True),)
TOPS = {
    "first": Top(Scan("a", FIELDS), (), BY_X, (SortKey(K),), 4),
    "ties": Top(Scan("a", FIELDS), (), BY_X, (), 4, with_ties=True),
    "by key": Top(Scan("a", FIELDS), (K,), BY_X, (), 2),
}
BEFORE: Bag = Counter(
    {(1, 9): 1, (1, 8): 1, (1, 7): 2, (1, 6): 1, (2, 8): 3, (None, 5): 1, (2, None): 1, (3, 7): 1}
)
CHANGES: dict[str, Bag] = {
    "behind": Counter({(1, 1): 1, (1, 6): -1, (2, None): -1}),
    "inside": Counter({(1, 9): 1, (2, 8): -1, (None, 6): 1, (4, 4): 1}),
    "short": Counter({(1, 9): -1, (1, 8): -1, (2, 8): -3, (3, 7): 1}),
}


@pytest.mark.parametrize("name", TOPS)
def test_spark_merges_first_rows_as_the_definition_says(name: str, runner: Runner) -> None:
    (stage,) = cut_stages(TOPS[name], "x")
    plan = stage_change(stage, frozenset({"a"}))
    schema = pa.schema([("_weight", pa.int64()), ("c1", pa.int32()), ("c2", pa.int32())])
    stored = evaluate(stage_full(stage, stored=False), lambda _: BEFORE)
    fields = [("_weight", pa.int64()), *((name, pa.int32()) for name, _ in stage.stored)]
    seen = set()
    for change in CHANGES.values():

        def read(scan: Scan, change: Bag = change) -> Bag:
            names = [name for name, _ in stage.stored] if scan.relation == "x" else ["c1", "c2"]
            places = [names.index(name) for name, _ in scan.fields]
            bag: Bag = Counter()
            for row, weight in (stored if scan.relation == "x" else change).items():
                bag[tuple(row[place] for place in places)] += weight
            return bag

        given = [
            Input("x_before", pa.schema(fields), rows=weighted_rows(stored, pa.schema(fields))),
            Input("a_change", schema, rows=weighted_rows(change, schema)),
        ]
        found = runner.collect(render(plan), given)
        assert isinstance(found, pa.Table)
        right = evaluate(plan, read)
        seen |= {row[-1] for row in right}
        assert {row[1:]: row[0] for row in tuples(found)} == right
    assert seen == {False, True}, "some group is stale, some are not"


def weighted_rows(bag: Bag, schema: pa.Schema) -> pa.Table:
    rows = [(weight, *row) for row, weight in bag.items()]
    arrays = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.table(arrays, schema=schema)
