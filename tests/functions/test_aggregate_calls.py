"""Calls as queries write them, with ORDER BY, DISTINCT and FILTER: PostgreSQL and Spark agree.

On Spark both ways are taken: the state that a stage keeps, from weighted rows, and the query over
ordinary rows that `verify` runs.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest

from headrace.delta.differentiate import stage_full
from headrace.plan.evaluate import Bag
from headrace.plan.operators import Operator
from headrace.plan.stages import cut_stages
from headrace.query import bind
from headrace.render import inputs_of, render
from headrace.render.native import render_native
from headrace.spark.profiles import settings_of
from headrace.types import BIGINT
from tests.query.aggregate_answers import answer, database, differences
from tests.query.aggregate_calls import CALLS, COLUMNS, Table, random_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
__all__ = ["database"]

# One spelling of each function, plain, with DISTINCT and with FILTER; PostgreSQL and the evaluator
# are compared on all of them elsewhere.
SPELLINGS = {
    (call.split("(")[0], "DISTINCT" in call, "FILTER" in call, "y)" in call): call
    for calls in CALLS
    for call in calls
}
ROWS = random_rows(random.Random(5), 40)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    for key, value in settings_of("tiny").items():
        made.conf.set(key, value)
    return made


def collected(session: SparkSession, text: str, plan: Operator, rows: Bag) -> list[dict[str, Any]]:
    """The rows of a query over the table's log, in which every weight is split into two rows."""
    log = [(weight, *row) for row, weight in (*rows.items(), *rows.items())]
    log += [(-weight, *row) for row, weight in rows.items()]
    types = [BIGINT, *(type_ for _, type_ in COLUMNS)]
    names = ["_weight", *(f"c{i}" for i in range(1, len(types)))]
    columns = list(zip(*log, strict=True)) or [()] * len(types)
    arrays = [pa.array(c, type_.arrow) for c, type_ in zip(columns, types, strict=True)]
    schema = ", ".join(f"{name} {t.spark}" for name, t in zip(names, types, strict=True))
    frame = session.createDataFrame(pa.table(arrays, names=names), schema=schema)
    for source in inputs_of(plan):
        frame.createOrReplaceTempView(source.name)
    found: list[dict[str, Any]] = session.sql(text).toArrow().to_pylist()
    return [{name: hashable(value) for name, value in row.items()} for row in found]


def hashable(value: Any) -> Any:
    """An array as the evaluator has it."""
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("rows", [ROWS, Counter()], ids=["groups", "no rows"])
def test_calls(rows: Bag, session: SparkSession, database: psycopg.Connection[Any]) -> None:
    calls = ("count(*)", "sum(i)", *SPELLINGS.values())
    shown = ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls))
    query = f"SELECT g, {shown} FROM t GROUP BY g" if rows else f"SELECT {shown} FROM t"
    bound = bind(query, Table())
    types = [column.type for column in bound.plan.columns]
    right = answer(database, query, rows)
    (stage,) = cut_stages(bound.plan, "x")
    full = stage_full(stage, stored=False)
    visible = [column.id for _, column in stage.visible]
    kept = collected(session, render(full), full, rows)
    assert not differences(
        Counter(tuple(row[name] for name in visible) for row in kept), right, types
    )
    native = collected(session, render_native(bound.plan, bound.names), full, rows)
    assert not differences(Counter(tuple(row.values()) for row in native), right, types)


def test_zeros_of_both_signs_are_one_group(session: SparkSession) -> None:
    bound = bind("SELECT f, count(*) AS n FROM t GROUP BY f", Table())
    (stage,) = cut_stages(bound.plan, "x")
    full = stage_full(stage, stored=False)
    visible = [column.id for _, column in stage.visible]
    kept = [[row[name] for name in visible] for row in collected(session, render(full), full, ROWS)]
    native = collected(session, render_native(bound.plan, bound.names), full, ROWS)
    for rows in (kept, [list(row.values()) for row in native]):
        (zero,) = (f for f, _ in rows if f == 0)
        assert str(zero) == "0.0"
    assert {str(row[6]) for row in ROWS} >= {"0.0", "-0.0"}
