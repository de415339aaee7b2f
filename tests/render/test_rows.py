"""Operators that make rows, on Spark: over weighted rows and over ordinary ones, in one query each.

The rows of all queries are shown as text under the query's number, so that they fit together.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from headrace.algebra.scalar import Column, Literal, Scalar
from headrace.functions import call, cast
from headrace.plan.evaluate import evaluate, net
from headrace.plan.operators import Aggregate, Net, Operator, Project, UnionAll
from headrace.query import bind
from headrace.render import inputs_of, render
from headrace.render.native import render_native
from headrace.spark.run import Input, Runner
from headrace.types import INTEGER, TEXT, array_of, numeric
from tests.query.golden import goldens
from tests.query.rows import DOCUMENTS, FUNCTIONS, Documents, read
from tests.query.shop import TABLES

pytestmark = pytest.mark.spark
WIDTH = 6
NUMBER = Column("query", INTEGER)
SHOWN = tuple(Column(f"shown_{i}", TEXT) for i in range(WIDTH))
SETS = tuple(g.query for g in goldens() if g.file == "set_operations")[:6]


def test_weighted_rows(runner: Runner) -> None:
    plan = together([p for p in map(planned, FUNCTIONS) if not grouped(p)])
    assert len(plan.children) >= 20
    found = runner.collect(render(Net(plan)), inputs(plan))
    assert isinstance(found, pa.Table)
    rows = {tuple(row.values())[1:]: row["_weight"] for row in found.to_pylist()}
    assert rows == net(evaluate(plan, read))


def test_ordinary_rows(runner: Runner) -> None:
    plan = together([planned(query) for query in (*FUNCTIONS, *SETS)])
    text = render_native(plan, tuple(column.id for column in plan.columns))
    found = runner.frame(text, inputs(plan)).toArrow()
    rows = Counter(tuple(row.values()) for row in found.to_pylist())
    assert rows == net(evaluate(plan, read))


def planned(query: str) -> Operator:
    return bind(query, Documents()).plan


def grouped(plan: Operator) -> bool:
    return isinstance(plan, Aggregate) or any(map(grouped, plan.children))


def together(plans: list[Operator]) -> UnionAll:
    """The rows of all plans as text, under the number of the plan."""
    parts = []
    for number, plan in enumerate(plans):
        texts = [text_of(column) for column in plan.columns]
        texts += [Literal(None, TEXT)] * (WIDTH - len(texts))
        outputs = zip(SHOWN, texts, strict=True)
        parts.append(Project(plan, ((NUMBER, Literal(number, INTEGER)), *outputs)))
    return UnionAll(tuple(parts))


def text_of(column: Column) -> Scalar:
    """Only a numeric with a known scale is printed alike everywhere."""
    if column.type.element is not None:
        known = array_of(numeric(30, 9)) if column.type.element.kind == "numeric" else column.type
        texts = cast(cast(column, known), array_of(TEXT))
        comma, null = Literal(",", TEXT), Literal("NULL", TEXT)
        return call("array_to_string", texts, comma, null)
    return cast(cast(column, numeric(30, 9)) if column.type.kind == "numeric" else column, TEXT)


def inputs(plan: Operator) -> list[Input]:
    """The tables with a weight of 1 for every row."""
    found = []
    for wanted in inputs_of(plan):
        table = next(t for t in (*TABLES, DOCUMENTS) if t.bound.relation == wanted.relation)
        columns = {column.physical: i for i, column in enumerate(table.bound.columns)}
        types = {column.physical: column.type for column in table.bound.columns}
        fields: list[tuple[str, pa.DataType]] = [("_weight", pa.int64())]
        for name in wanted.columns:
            type_ = types[name]
            assert type_ is not None
            fields.append((name, type_.arrow))
        schema = pa.schema(fields)
        values = [[1] * len(table.rows)]
        values += [[row[columns[name]] for row in table.rows] for name in wanted.columns]
        arrays = [pa.array(v, t) for v, t in zip(values, schema.types, strict=True)]
        found.append(Input(wanted.name, schema, rows=pa.table(arrays, schema=schema)))
    return found
