"""Net on Spark keeps every value apart that PostgreSQL's bits keep apart, and NULLs together."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from headrace.plan.operators import Negate, Net, Scan, UnionAll
from headrace.render import render
from headrace.spark.run import Input, Runner
from tests.render.weighted_rows import FIELDS, NAN, SCHEMA, bag, rows

pytestmark = pytest.mark.spark


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
