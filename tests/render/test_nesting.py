"""Deep plans on Spark: what is put into WITH means what it meant in FROM."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.algebra.scalar import Column, Literal
from headrace.functions import call
from headrace.plan.evaluate import evaluate, net
from headrace.plan.operators import Filter, Join, Net, Operator, Project, Scan, UnionAll
from headrace.render import render
from headrace.render.pieces import DEEPEST
from headrace.spark.run import Input, Runner
from headrace.spark.session import Spark
from headrace.types import BIGINT

pytestmark = pytest.mark.spark
SCHEMA = pa.schema([("_weight", pa.int64()), ("c1", pa.int64())])
ROWS = Counter({(1,): 2, (5,): 1, (30,): -1})


def deep(levels: int) -> Operator:
    """A tower of filters, projections, unions and joins over one relation."""
    column = Column("x0", BIGINT)
    plan: Operator = Scan("r", (("c1", column),), "change")
    for level in range(1, levels):
        following = Column(f"x{level}", BIGINT)
        match level % 4:
            case 0:
                plan = Filter(plan, call("<", column, Literal(10 + level, BIGINT)))
                continue
            case 1 | 2:
                one = Literal(1, BIGINT)
                plan = Project(plan, ((following, call("+", column, one)),))
            case _:
                other = Column(f"y{level}", BIGINT)
                side = Scan("r", (("c1", other),), "change")
                joined = Join(plan, Net(side), call("=", other, Literal(5, BIGINT)))
                plan = Project(joined, ((following, column),))
                plan = UnionAll((plan, Scan("r", (("c1", following),), "change")))
        column = following
    return plan


def test_deep_plans(spark: SparkSession) -> None:
    runner = Runner(Spark.open(spark))
    plan = deep(40)
    text = render(Net(plan))
    assert text.startswith("WITH")
    assert text.count("FROM `w") == 3
    rows = pa.table([[2, 1, -1], [1, 5, 30]], schema=SCHEMA)
    found = runner.collect(text, [Input("r_change", SCHEMA, rows=rows)])
    runner.close()
    assert isinstance(found, pa.Table)
    values, weights = (found[name].to_pylist() for name in (plan.columns[0].id, "_weight"))
    given = {(value,): weight for value, weight in zip(values, weights, strict=True)}
    assert given == dict(net(evaluate(plan, lambda _: ROWS)))


def test_ordinary_plans_have_no_with() -> None:
    column = Column("x", BIGINT)
    plan: Operator = Scan("r", (("c1", column),))
    for _ in range(DEEPEST - 1):
        plan = Filter(plan, call("<", column, Literal(1, BIGINT)))
    assert render(plan).startswith("SELECT")
    assert render(Filter(plan, call("<", column, column))).startswith("WITH")
