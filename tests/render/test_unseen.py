"""Part and Unseen on Spark: rows are the same where DISTINCT in PostgreSQL takes them for it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.algebra.scalar import Column
from headrace.plan.operators import Net, Part, Scan, Unseen
from headrace.plan.operators.part import Sign
from headrace.render import render
from headrace.spark.run import Input, Runner
from headrace.types import BIGINT, DOUBLE
from tests.render.weighted_rows import FIELDS, NAN, SCHEMA, bag, rows

pytestmark = pytest.mark.spark
KNOWN = (("k", Column("known_k", BIGINT)), ("x", Column("known_x", DOUBLE)))


@pytest.mark.parametrize("one_partition", [True, False])
def test_rows_that_are_not_known(runner: Runner, *, one_partition: bool) -> None:
    found = rows(
        (1, 1, 0.0),
        (1, 2, -0.0),
        (1, 3, NAN),
        (1, 4, None),
        (1, None, None),
        (3, 5, 1.5),
        (1, 6, -0.0),
        (1, 6, 0.0),
        (1, 7, 1.0),
        (-1, 7, 1.0),
        (1, 8, 1.0),
        (1, 9, 1.0),
    )
    known = rows(
        (1, 1, -0.0),
        (1, 2, 0.0),
        (1, 3, NAN),
        (1, 4, None),
        (1, None, None),
        (1, 8, 1.0),
        (-1, 8, 1.0),
        (2, 9, 1.0),
        (-1, 9, 1.0),
    )
    plan = Unseen(Scan("r", FIELDS, "found"), Scan("r", KNOWN, "before"))
    inputs = [Input("r_found", SCHEMA, rows=found), Input("r_before", SCHEMA, rows=known)]
    text = render(plan, one_partition=one_partition)
    profile = "tiny" if one_partition else "wide"
    result = runner.collect(text, inputs, profile=profile)
    assert isinstance(result, pa.Table)
    assert bag(result) == bag(rows((1, 5, 1.5), (1, 6, 0.0), (1, 8, 1.0)))


def test_rows_without_columns(runner: Runner) -> None:
    schema = pa.schema([("_weight", pa.int64())])
    text = render(Unseen(Scan("n", (), "found"), Scan("n", (), "before")), one_partition=True)
    for found, known, expected in (
        ([2], [], [1]),
        ([2], [1, -1], [1]),
        ([1], [1], []),
        ([], [], []),
    ):
        tables = [pa.table({"_weight": pa.array(w, pa.int64())}) for w in (found, known)]
        names = ("n_found", "n_before")
        inputs = [Input(n, schema, rows=t) for n, t in zip(names, tables, strict=True)]
        result = runner.collect(text, inputs)
        assert isinstance(result, pa.Table)
        assert result.column("_weight").to_pylist() == expected


@pytest.mark.parametrize(("sign", "expected"), [("added", (2, 1, 0.5)), ("removed", (3, 2, 0.5))])
def test_one_part_of_a_change(runner: Runner, sign: Sign, expected: tuple[int, int, float]) -> None:
    change = rows((2, 1, 0.5), (-3, 2, 0.5), (1, 3, 0.5), (-1, 3, 0.5))
    text = render(Part(Net(Scan("r", FIELDS, "change")), sign))
    result = runner.collect(text, [Input("r_change", SCHEMA, rows=change)])
    assert isinstance(result, pa.Table)
    assert bag(result) == bag(rows(expected))
