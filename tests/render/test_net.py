"""Net on Spark keeps every value apart that PostgreSQL's bits keep apart, and NULLs together."""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pytest

from headrace.algebra.scalar import Column
from headrace.plan.operators import Negate, Net, Scan, UnionAll
from headrace.render import render
from headrace.spark.run import Input, Runner
from headrace.types import BIGINT, DOUBLE

pytestmark = pytest.mark.spark
SCHEMA = pa.schema([("_weight", pa.int64()), ("k", pa.int64()), ("x", pa.float64())])
FIELDS = (("k", Column("k", BIGINT)), ("x", Column("x", DOUBLE)))
NAN = float("nan")


def rows(*values: tuple[int, int | None, float | None]) -> pa.Table:
    columns = zip(zip(*values, strict=True), SCHEMA.types, strict=True)
    return pa.table([pa.array(column, type_) for column, type_ in columns], schema=SCHEMA)


def bag(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Rows counted, floats by their digits: -0.0 is not 0.0, and NaN is NaN."""
    return Counter(
        (row["_weight"], row["k"], None if row["x"] is None else repr(row["x"]))
        for row in table.to_pylist()
    )


def test_weights_of_equal_rows_are_summed(runner: Runner) -> None:
    change = rows(
        (1, 1, 0.0),
        (1, 1, -0.0),
        (1, 1, -0.0),
        (1, 2, NAN),
        (1, 2, -NAN),
        (1, None, None),
        (2, None, None),
        (1, 3, 1.5),
        (-1, 3, 1.5),
        (-1, 4, 1e-300),
        (1, 5, math.inf),
    )
    text = render(Net(Scan("r", FIELDS, "change")))
    net = runner.collect(text, [Input("r_change", SCHEMA, rows=change)])
    assert isinstance(net, pa.Table)
    assert bag(net) == bag(
        rows(
            (1, 1, 0.0),
            (2, 1, -0.0),
            (2, 2, NAN),
            (3, None, None),
            (-1, 4, 1e-300),
            (1, 5, math.inf),
        )
    )


def test_rows_without_columns_are_counted(runner: Runner) -> None:
    schema = pa.schema([("_weight", pa.int64())])
    text = render(Net(Scan("none", (), "change")))
    for weights, expected in (([2, -1], [1]), ([1, -1], []), ([], [])):
        table = pa.table({"_weight": pa.array(weights, pa.int64())})
        net = runner.collect(text, [Input("none_change", schema, rows=table)])
        assert isinstance(net, pa.Table)
        assert net.column("_weight").to_pylist() == expected


def test_the_difference_turns_one_bag_into_the_other(runner: Runner) -> None:
    old = rows((1, 1, 0.0), (2, 2, NAN), (1, None, None))
    new = rows((1, 1, -0.0), (1, 2, NAN), (1, None, None), (1, 5, None))
    plan = Net(UnionAll((Scan("d", FIELDS, "change"), Negate(Scan("d", FIELDS, "before")))))
    inputs = [Input("d_change", SCHEMA, rows=new), Input("d_before", SCHEMA, rows=old)]
    found = runner.collect(render(plan), inputs)
    assert isinstance(found, pa.Table)
    assert bag(found) == bag(rows((-1, 1, 0.0), (1, 1, -0.0), (-1, 2, NAN), (1, 5, None)))
