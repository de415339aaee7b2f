"""Wherever two numerics meet in an expression, the last digit of each of them counts.

PostgreSQL computes with as many digits as it takes. An expression gives the same here, in Python
and on Spark, or is refused with both types named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from headrace.algebra.scalar import Scalar, Value
from headrace.errors import UserError
from headrace.functions.decimals import digits_before_point
from headrace.functions.logic import lossless
from headrace.functions.numbers import as_numeric
from headrace.query.refusal import spelled
from headrace.spark.profiles import settings_of
from headrace.types import Type, numeric
from tests.functions import engines
from tests.functions.bound_scalar import scalar_of
from tests.functions.comparison import agree, beyond
from tests.functions.engines import Answer, Failed
from tests.functions.numeric_pairs import LIMITS, PLAIN, Row, pairs, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARISONS = (
    "a0 = a1",
    "a0 <> a1",
    "a0 < a1",
    "a0 <= a1",
    "a0 > a1",
    "a0 >= a1",
    "a0 IS DISTINCT FROM a1",
    "a0 IS NOT DISTINCT FROM a1",
    "a0 BETWEEN a1 AND a1",
    "a0 NOT BETWEEN a1 AND 0",
    "a0 IN (a1, 0)",
    "a0 NOT IN (0.5, a1)",
    "(a0, 1) = (a1, 1)",
    "a0 = ANY (ARRAY[a1, a1])",
    "a0 <> ALL (ARRAY[a1])",
    "a0 < ANY (ARRAY[a1])",
    "CASE a0 WHEN a1 THEN 1 ELSE 2 END",
    "nullif(a0, a1)",
)
# What needs one type for both may be refused, or a value of no declared digits be too large for it.
ONE_TYPE = (
    "coalesce(a0, a1)",
    "CASE WHEN a0 < a1 THEN a0 ELSE a1 END",
    "greatest(a0, a1)",
    "least(a0, a1, 0)",
    "ARRAY[a0, a1] = ARRAY[a1, a0]",
    "ARRAY[a0] = ARRAY[a1]",
)
CHOICES = (
    *ONE_TYPE,
    "- a0",
    "abs(a1)",
    "sign(a0::numeric)",
    "trunc(a1::numeric)",
    "a0 % 7",
    "a0 + a1",
    "a0 - a1",
    "a0 * a1",
    "a0 + a1 > a1 - a0",
    "a0 <= 0.5 * a1",
    "2.5 * a0 = a1 * 2.5",
    "a0 % 7 = a1 % 7",
)
REFUSED = ("unsupported-type", "unsupported-function")


def constants(left: Type, right: Type, found: tuple[Row, ...]) -> tuple[str, ...]:
    """IN and comparisons with values of the other column, written as constants."""
    values = [row[1] for row in found if row[1] is not None][:3]
    if left.is_integer or not values:
        return ()
    listed = ", ".join(f"{value:f}" if right.kind == "numeric" else str(value) for value in values)
    return (f"a0 IN ({listed})", f"a0 NOT IN ({listed}, NULL)", f"a0 > {listed.split(', ')[0]}")


def bound(text: str, types: tuple[Type, Type]) -> Scalar | None:
    """The expression, or None if it is refused as it may be."""
    try:
        return scalar_of(text, types)
    except UserError as error:
        named = any(spelled(type_) in error.message for type_ in types)
        product = "needs more than 38 digits" in error.message and "stored as" in error.message
        if text not in CHOICES or error.code not in REFUSED or not (named or product):
            raise AssertionError(f"{text} over {types}: {error}") from error
        return None


def answers(
    connection: psycopg.Connection[Any], texts: list[str], types: tuple[Type, Type], of: list[Row]
) -> list[list[Answer]]:
    """PostgreSQL's values of each expression on each row."""
    cells = ", ".join(
        f"({n}, {', '.join(spell(v, t) for v, t in zip(row, types, strict=True))})"
        for n, row in enumerate(of)
    )
    query = f"SELECT {', '.join(texts)} FROM (VALUES {cells}) AS t (n, a0, a1) ORDER BY n"
    return [list(column) for column in zip(*connection.execute(query).fetchall(), strict=True)]


def spell(value: Value, type_: Type) -> str:
    return f"{'NULL' if value is None else repr(str(value))}::{type_.sql}"


def tried(
    connection: psycopg.Connection[Any], count: int, seed: int
) -> Iterator[tuple[str, engines.Question, list[Answer]]]:
    """Each expression that is not refused over each pair, with PostgreSQL's answers."""
    smallest = [(numeric(38, 3), PLAIN), (numeric(38, 2), numeric(38, 10))]
    for n, types in enumerate([*smallest, *pairs(count, seed)]):
        values = rows(*types, seed + n)
        texts = (*COMPARISONS, *CHOICES, *constants(*types, values))
        kept = [(t, s) for t in texts for s in (bound_or_none(t, types),) if s is not None]
        right = answers(connection, [text for text, _ in kept], types, list(values))
        for (text, scalar), theirs in zip(kept, right, strict=True):
            yield text, engines.Question(scalar, types, values), theirs


def bound_or_none(text: str, types: tuple[Type, Type]) -> Scalar | None:
    if text in (*COMPARISONS, *CHOICES):
        return bound(text, types)
    return scalar_of(text, types)


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        yield connection


def described(text: str, question: engines.Question, n: int, ours: Answer, theirs: Answer) -> str:
    types = ", ".join(map(spelled, question.types))
    return f"{text} over {types} {question.rows[n]} is {ours!r}, not {theirs!r}"


@pytest.mark.postgres
def test_as_in_postgres(connection: psycopg.Connection[Any]) -> None:
    wrong: list[str] = []
    for text, question, right in tried(connection, 120, seed=1):
        found = engines.pure(lambda *_, s=question.scalar: s, question.types, question.rows)
        wrong += [
            described(text, question, n, ours, theirs)
            for n, (theirs, ours) in enumerate(zip(right, found, strict=True))
            if not agree(theirs, ours, question.scalar.type)
            and not (overflows(ours) and may_overflow(text, question.types))
        ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:40])


def overflows(answer: Answer) -> bool:
    """A sum or product inside has more digits than are stored: an error, and no wrong value."""
    return isinstance(answer, Failed) and "out of range" in answer.message


def may_overflow(text: str, types: tuple[Type, ...]) -> bool:
    return text not in ONE_TYPE or not lossless(types)


@pytest.mark.postgres
@pytest.mark.spark
def test_on_spark(connection: psycopg.Connection[Any], spark: SparkSession) -> None:
    session = spark.newSession()
    for key, value in settings_of("tiny").items():
        session.conf.set(key, value)
    wrong: list[str] = []
    asked: list[tuple[str, engines.Question, list[Answer]]] = []
    for text, question, right in tried(connection, 45, seed=2):
        pure = engines.pure(lambda *_, s=question.scalar: s, question.types, question.rows)
        type_ = question.scalar.type
        good = [
            n
            for n, answer in enumerate(right)
            if not beyond(answer, type_) and not overflows(pure[n])
        ]
        rows_ = tuple(question.rows[n] for n in good)
        asked.append(
            (
                text,
                engines.Question(question.scalar, question.types, rows_),
                [right[n] for n in good],
            )
        )
    for start in range(0, len(asked), 100):
        batch = asked[start : start + 100]
        found = engines.spark(session, [question for _, question, _ in batch])
        for (text, question, right), answer in zip(batch, found, strict=True):
            wrong += [
                described(text, question, n, ours, theirs)
                for n, (theirs, ours) in enumerate(zip(right, answer, strict=True))
                if not agree(theirs, ours, question.scalar.type)
            ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:40])


def test_the_limits_are_refused_only_where_a_column_has_no_room() -> None:
    """The one type has all digits after the point, and those before it that columns can fill."""
    for left in LIMITS:
        for right in LIMITS:
            types = (left, right)
            scale = max(t.scale or 0 for t in types)
            full = (digits_before_point(as_numeric(t)) for t in types if t != PLAIN)
            whole = max(full, default=0)
            exact = whole + scale <= 38 or left == right
            assert (bound("coalesce(a0, a1)", types) is not None) == exact, types
