"""Arithmetic of join keys: the operator's own value, and NULL where that would be an error."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from headrace.algebra.scalar import Call, Column, Literal, Scalar
from headrace.functions import FUNCTION_BY_NAME, call, can_raise, cast, tried
from headrace.functions.tries import TRIES
from headrace.plan.evaluate import scalar as scalar_value
from headrace.types import BIGINT, INTEGER, TEXT, Type
from tests.functions import engines
from tests.functions.cases import DATE, SMALLINT, VALUES
from tests.functions.engines import Failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNATURES = [
    *(
        (name, types)
        for name in "+-*"
        for types in itertools.product((SMALLINT, INTEGER, BIGINT), repeat=2)
    ),
    *((f"date {sign}", (DATE, of)) for sign in "+-" for of in (SMALLINT, INTEGER)),
]


def key(name: str, types: tuple[Type, ...]) -> Scalar | None:
    return tried(call(name, *engines.columns_of_row(types)))


def questions() -> list[tuple[str, engines.Question]]:
    asked = []
    for name, types in SIGNATURES:
        scalar = key(name, types)
        if scalar is not None:
            rows = tuple(itertools.product(*(VALUES[type_] for type_ in types)))
            asked.append((name, engines.Question(scalar, types, rows)))
    return asked


def test_every_row_is_asked() -> None:
    called = {q.scalar.function for _, q in questions() if isinstance(q.scalar, Call)}
    assert called == {function.name for function in TRIES}


def test_null_is_just_where_the_operator_fails() -> None:
    for name, question in questions():
        assert not can_raise(question.scalar)
        plain = engines.pure(lambda *c, n=name: call(n, *c), question.types, question.rows)
        found = engines.pure(lambda *_, q=question: q.scalar, question.types, question.rows)
        assert found == [None if isinstance(answer, Failed) else answer for answer in plain]


@pytest.mark.spark
def test_spark_agrees(spark: SparkSession) -> None:
    asked = [question for _, question in questions()]
    for question, found in zip(asked, engines.spark(spark, asked), strict=True):
        assert found == engines.pure(
            lambda *_, q=question: q.scalar, question.types, question.rows
        ), question.scalar


K = Column("k", INTEGER)
NEXT = call("+", K, Literal(1, INTEGER))


@pytest.mark.parametrize(
    "scalar",
    [
        call("coalesce", NEXT, Literal(0, INTEGER)),
        call("is null", NEXT),
        call("/", K, Column("n", INTEGER)),
        cast(Column("t", TEXT), INTEGER),
    ],
    ids=["a default", "a test", "a division", "a cast"],
)
def test_what_cannot_be_tried(scalar: Scalar) -> None:
    """Above a NULL that should have been an error there may be no answer."""
    assert tried(scalar) is None


def test_what_stands_above_becomes_null_too() -> None:
    text = tried(call("||", cast(NEXT, TEXT), Literal("x", TEXT)))
    assert text is not None
    assert scalar_value(text, {K: 2**31 - 1}) is None
    assert scalar_value(text, {K: 4}) == "5x"
    twice = tried(call("*", NEXT, NEXT))
    assert isinstance(twice, Call) and FUNCTION_BY_NAME[twice.function] in TRIES
    assert tried(K) is K
