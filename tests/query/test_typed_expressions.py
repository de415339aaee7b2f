"""Random well-typed expressions: PostgreSQL, Spark and the pure evaluator agree on every one."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from math import isclose
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest

from headrace.errors import UserError
from headrace.functions import EvaluationError
from headrace.plan.evaluate import evaluate
from headrace.plan.operators import Operator, Project
from headrace.query import BoundQuery, bind
from headrace.render import render
from headrace.spark.profiles import settings_of
from headrace.types import BIGINT
from tests.query.comparable_rows import bag
from tests.query.shop import TABLES, Shop, load, read
from tests.query.typed_expressions import COLUMNS, KINDS, expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

FROM = "FROM orders o JOIN customers c ON c.id = o.id"
BATCHES = int(os.environ.get("HEADRACE_BATCHES", "3"))
BATCH = 60
# Every column that an expression may read, so that one join serves them all.
EVERYTHING = ", ".join(
    f"{name} AS n{i}" for i, name in enumerate(name for names in COLUMNS.values() for name in names)
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for key, value in settings_of("tiny").items():
        session.conf.set(key, value)
    for table in TABLES:
        bound = table.bound
        stored = [(i, c) for i, c in enumerate(bound.columns) if c.type is not None]
        arrays = {"_weight": pa.array([1] * len(table.rows), BIGINT.arrow)}
        schema = ["_weight BIGINT"]
        for i, column in stored:
            assert column.type is not None
            values = [row[i] for row in table.rows]
            arrays[column.physical] = pa.array(values, column.type.arrow)
            schema.append(f"{column.physical} {column.type.spark}")
        frame = session.createDataFrame(pa.table(arrays), schema=", ".join(schema))
        frame.createOrReplaceTempView(f"{bound.relation}_after".replace(" ", "_"))
    return session


@pytest.mark.parametrize("seed", range(BATCHES))
def test_batch(seed: int, dsn: str, session: SparkSession) -> None:
    random = Random(seed)
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        load(connection)
        tried = [expression(random, random.choice(KINDS), 3) for _ in range(BATCH)]
        found = [each for each in (agreed(connection, text) for text in tried) if each is not None]
    assert len(found) > BATCH // 3
    on_spark(session, found)


Agreed = tuple[str, BoundQuery, Counter[tuple[Any, ...]]]


def agreed(connection: psycopg.Connection[Any], text: str) -> Agreed | None:
    """The rows that PostgreSQL and the evaluator agree on; None if PostgreSQL reports an error."""
    query = f"SELECT o.id AS id, {text} AS x {FROM}"
    try:
        bound = bind(query, Shop())
    except UserError as error:
        if not error.code.startswith("unsupported-"):
            raise
        return None
    try:
        rows = connection.execute(query).fetchall()
    except psycopg.DataError:
        return None
    types = [column.type for column in bound.plan.columns]
    try:
        ours = evaluate(bound.plan, read)
    except EvaluationError as error:
        # Our numerics have 38 digits, PostgreSQL's have more; nothing else may fail here alone.
        if "numeric" not in str(error):
            raise
        return None
    assert alike(bag(ours.elements(), types), bag(rows, types), text), text
    return text, bound, bag(rows, types)


def alike(ours: Counter[tuple[Any, ...]], right: Counter[tuple[Any, ...]], text: str) -> bool:
    """Equal; near where a numeric was divided, since its quotient has a fixed number of digits."""
    if ours == right or "/" not in text:
        return ours == right
    return all(
        a == b or (a is not None and b is not None and isclose(a, b, rel_tol=1e-6, abs_tol=1e-6))
        for (_, a), (_, b) in zip(sorted(ours), sorted(right), strict=True)
    )


def on_spark(session: SparkSession, found: list[Agreed]) -> None:
    """All expressions of the batch as the columns of one query."""
    wide = combined([bound.plan for _, bound, _ in found])
    rows = session.sql(render(wide)).toArrow().to_pylist()
    key = wide.columns[0].id
    wrong = []
    for i, (text, bound, right) in enumerate(found, 1):
        types = [column.type for column in bound.plan.columns]
        ours = bag(((row[key], row[wide.columns[i].id]) for row in rows), types)
        if not alike(ours, right, text):
            wrong.append(f"{text}: {ours - right} instead of {right - ours}")
    assert not wrong, "\n".join(wrong[:5])


def combined(plans: list[Operator]) -> Project:
    """One projection with the second column of each: all read the same join."""
    first = bind(f"SELECT {EVERYTHING} {FROM}", Shop()).plan
    assert isinstance(first, Project)
    outputs = []
    for plan in plans:
        assert isinstance(plan, Project)
        outputs.append((replace(plan.outputs[1][0], id=f"x{len(outputs)}"), plan.outputs[1][1]))
    assert isinstance(plans[0], Project)
    return Project(first.child, (plans[0].outputs[0], *outputs))
