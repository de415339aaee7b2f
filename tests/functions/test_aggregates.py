"""Every aggregate means the same in PostgreSQL, on Spark (by its state) and in Python."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest

from headrace.algebra.scalar import Column, Value
from headrace.delta.differentiate import stage_full
from headrace.functions import AGGREGATES, EvaluationError
from headrace.functions.decimals import LONG_QUOTIENT, QUOTIENT
from headrace.functions.numbers import WIDE
from headrace.plan.evaluate import evaluate
from headrace.plan.operators import Aggregate, AggregateCall, Scan
from headrace.plan.stages import cut_stages
from headrace.render import inputs_of, render
from headrace.spark.profiles import settings_of
from headrace.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type
from tests.functions.cases import DATE, FREE, LONG, NUMBERS, PRICE, REAL, SMALLINT, WHOLE
from tests.query.aggregate_calls import DEVIATIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

# Group 1 is mixed, 2 has NULLs only, 3 one value, 4 a value and its opposite, 5 duplicates.
# Group 6 has a NaN, 7 and 8 zeros of both signs.
ROWS: dict[Type, tuple[tuple[int, Value], ...]] = {
    SMALLINT: ((1, 2**15 - 1), (1, 2**15 - 1), (1, None), (3, -3), (4, 7), (4, -7)),
    INTEGER: ((1, 2**31 - 1), (1, 2**31 - 1), (1, None), (3, -3), (4, 7), (4, -7)),
    BIGINT: ((1, 2**63 - 1), (1, 2**63 - 1), (1, None), (3, -(2**63)), (4, 7), (4, -7)),
    REAL: ((1, 1.5), (1, None), (1, -0.25), (3, 3.25), (4, 1.5), (4, -1.5)),
    DOUBLE: ((1, 0.1), (1, None), (1, 0.2), (3, 1e300), (4, math.inf), (4, 1.0), (6, math.nan),
             (6, 2.0), (7, 0.0), (7, -0.0), (8, -0.0), (8, 0.0)),
    PRICE: ((1, Decimal("1.10")), (1, Decimal("2.25")), (1, None), (3, Decimal("-0.01"))),
    WHOLE: ((1, Decimal(1)), (1, Decimal(1)), (1, Decimal(0)), (1, None), (3, Decimal(99999))),
    LONG: ((1, Decimal("1E19")), (1, Decimal("1E-10")), (1, None), (3, Decimal(-7))),
    FREE: ((1, Decimal("0.1")), (1, Decimal("1E-18")), (1, None), (3, Decimal("12345678901.5"))),
    TEXT: ((1, "a"), (1, "B"), (1, None), (3, "")),
    BOOLEAN: ((1, True), (1, False), (1, None), (3, True), (4, False), (5, True), (5, True)),
    DATE: ((1, None), (1, date(2024, 2, 29)), (1, date(2023, 1, 1)), (3, date(1, 1, 1))),
}  # fmt: skip
NULLS: tuple[tuple[int, Value], ...] = ((2, None), (2, None))
# What takes one argument, in any order; the others are written as queries.
PLAIN = [f for f in AGGREGATES if f.syntax and f.arguments == 1 and f.order == "none"]


def calls_on(type_: Type) -> tuple[AggregateCall, ...]:
    """Every aggregate that takes the type."""
    argument = Column("a", type_)
    calls = [AggregateCall(Column("rows", BIGINT), "count")]
    for function in PLAIN:
        result = function.type_of(type_)
        if result is not None and not (type_ == LONG and function.name in DEVIATIONS):
            calls.append(AggregateCall(Column(function.name, result), function.name, argument))
    return tuple(calls)


def test_every_aggregate_has_cases() -> None:
    tried = {call.function for type_ in ROWS for call in calls_on(type_)}
    assert tried == {function.name for function in PLAIN}
    assert set(NUMBERS) <= set(ROWS)


@pytest.mark.parametrize("grouped", [True, False], ids=["grouped", "global"])
@pytest.mark.parametrize("type_", ROWS, ids=lambda type_: type_.sql)
def test_three_engines_agree(type_: Type, grouped: bool, dsn: str, spark: SparkSession) -> None:
    group, argument = Column("g", INTEGER), Column("a", type_)
    calls = calls_on(type_)
    plan = Aggregate(
        Scan("r1", (("c1", group), ("c2", argument))), (group,) if grouped else (), calls
    )
    rows = (*ROWS[type_], *NULLS) if grouped else NULLS
    right = in_postgres(dsn, type_, rows, calls, grouped=grouped)
    python = evaluate(plan, lambda _: Counter(rows))
    assert agree(right, list(python.elements()), plan), (right, python)
    found = on_spark(spark, plan, rows)
    assert agree(right, found, plan), (right, found)


@pytest.mark.parametrize("type_", [INTEGER, PRICE, DOUBLE], ids=lambda type_: type_.sql)
def test_nothing_at_all(type_: Type, dsn: str, spark: SparkSession) -> None:
    calls = calls_on(type_)
    plan = Aggregate(Scan("r1", (("c2", Column("a", type_)),)), (), calls)
    right = in_postgres(dsn, type_, (), calls, grouped=False)
    assert agree(right, list(evaluate(plan, lambda _: Counter()).elements()), plan)
    assert agree(right, on_spark(spark, plan, ()), plan)


@pytest.mark.parametrize("name", ["var_pop", "stddev"])
def test_a_variance_of_more_digits_than_there_are_is_an_error(
    name: str, spark: SparkSession
) -> None:
    argument = Column("a", LONG)
    call = AggregateCall(Column(name, LONG_QUOTIENT), name, argument)
    plan = Aggregate(Scan("r1", (("c2", argument),)), (), (call,))
    rows = ((1, Decimal("1E19")), (1, Decimal(0)))
    with pytest.raises(EvaluationError):
        evaluate(plan, lambda _: Counter({(value,): 1 for _, value in rows}))
    with pytest.raises(Exception, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        on_spark(spark, plan, rows)


def in_postgres(
    dsn: str,
    type_: Type,
    rows: tuple[tuple[int, Value], ...],
    calls: tuple[AggregateCall, ...],
    *,
    grouped: bool,
) -> list[tuple[Any, ...]]:
    shown = [f"{call.function}({'*' if call.argument is None else 'a'})" for call in calls]
    query = f"SELECT {', '.join(['g'] * grouped + shown)} FROM t" + " GROUP BY g" * grouped
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        collation = ' COLLATE "C"' if type_.is_text else ""
        cursor.execute(f"CREATE TABLE t (g int, a {type_.sql}{collation})")
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", rows)
        return cursor.execute(query).fetchall()


def on_spark(
    spark: SparkSession, plan: Aggregate, rows: tuple[tuple[int, Value], ...]
) -> list[tuple[Any, ...]]:
    """The aggregate as a stage computes it: from hidden sums."""
    session = spark.newSession()
    for key, value in settings_of("tiny").items():
        session.conf.set(key, value)
    (stage,) = cut_stages(plan, "r2")
    full = stage_full(stage, stored=False)
    scan = plan.child
    assert isinstance(scan, Scan)
    types = {"_weight": BIGINT, "c1": INTEGER, "c2": scan.fields[-1][1].type}
    columns = {"_weight": [1] * len(rows), "c1": [g for g, _ in rows], "c2": [a for _, a in rows]}
    table = pa.table({name: pa.array(columns[name], types[name].arrow) for name in columns})
    schema = ", ".join(f"{name} {type_.spark}" for name, type_ in types.items())
    for source in inputs_of(full):
        session.createDataFrame(table, schema=schema).createOrReplaceTempView(source.name)
    result = session.sql(render(full)).toArrow()
    visible = [column.id for _, column in stage.visible]
    return [tuple(row[name] for name in visible) for row in result.to_pylist()]


def agree(right: list[tuple[Any, ...]], found: list[tuple[Any, ...]], plan: Aggregate) -> bool:
    def order(row: tuple[Any, ...]) -> str:
        return str(row[0])

    pairs = zip(sorted(right, key=order), sorted(found, key=order), strict=True)
    return all(
        same(a, b, shown(column))
        for theirs, ours in pairs
        for a, b, column in zip(theirs, ours, plan.columns, strict=True)
    )


def shown(column: Column) -> Type:
    """A deviation is right to the digits that are shown of it."""
    is_rounded = column.id in DEVIATIONS and column.type.rounded
    return QUOTIENT if is_rounded else column.type


def same(theirs: Any, ours: Any, type_: Type) -> bool:
    if theirs is None or ours is None:
        return theirs is ours
    if type_.is_float:
        tolerance = 1e-5 if type_.kind == "real" else 1e-12
        both_nan = math.isnan(theirs) and math.isnan(ours)
        return both_nan or math.isclose(theirs, ours, rel_tol=tolerance)
    if type_.rounded:
        assert type_.scale is not None
        scale = min(-theirs.as_tuple().exponent, type_.scale)
        ulp = Decimal(1).scaleb(-scale)
        return abs(WIDE.subtract(theirs, ours)) <= ulp
    return bool(theirs == ours)
