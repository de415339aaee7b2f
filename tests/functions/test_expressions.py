"""Expressions of queries mean the same in PostgreSQL, on Spark and in Python, names included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.string import TextLoader

from headrace.algebra.scalar import Call, Scalar, walk
from headrace.functions import FUNCTIONS
from headrace.functions.aggregates.sums import INTERVAL_PARTS
from headrace.functions.tries import TRIES
from headrace.spark.profiles import settings_of
from headrace.types import Type
from tests.functions import engines
from tests.functions.bound_scalar import scalar_of
from tests.functions.cases import CASES
from tests.functions.comparison import agree, beyond, too_far
from tests.functions.engines import Answer, Failed
from tests.functions.expressions import EXPRESSIONS, JSONB, REWRITTEN
from tests.functions.spelled import Spelled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Rows that no expression can name: lowering makes them, and their own tests try them.
ELSEWHERE = {
    "only row",
    "square root",
    *(function.name for function in (*INTERVAL_PARTS, *TRIES)),
}


def test_every_row_is_tried() -> None:
    """By an expression here, or by arguments alone in test_agreement."""
    called = {
        node.function
        for group in EXPRESSIONS.values()
        for spelled in group
        for text in spelled.texts
        for node in walk(scalar_of(text, spelled.types))
        if isinstance(node, Call)
    }
    assert {function.name for function in FUNCTIONS} <= called | {*CASES, *ELSEWHERE}


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("SET TimeZone = 'UTC'; SET IntervalStyle = 'iso_8601'")
        for name in ("interval", "time"):
            connection.adapters.register_loader(name, TextLoader)
        yield connection


def asked(
    connection: psycopg.Connection[Any], spelled: Spelled
) -> Iterator[tuple[str, engines.Question, list[Answer]]]:
    """Each expression with PostgreSQL's answers."""
    for text in spelled.texts:
        question = engines.Question(scalar_of(text, spelled.types), spelled.types, spelled.rows)
        yield text, question, answers(connection, text, spelled)


def answers(connection: psycopg.Connection[Any], text: str, spelled: Spelled) -> list[Answer]:
    template = text.replace("{", "{{").replace("}", "}}")
    return engines.postgres(connection, template, spelled.types, spelled.rows)


@pytest.mark.postgres
@pytest.mark.parametrize("group", EXPRESSIONS)
def test_as_in_postgres(group: str, connection: psycopg.Connection[Any]) -> None:
    wrong: list[str] = []
    for text, question, right in chain(*(asked(connection, each) for each in EXPRESSIONS[group])):
        type_ = question.scalar.type
        theirs = kind_in_postgres(connection, text, question.types)
        if theirs != kind_of(type_):
            wrong.append(f"{text} is {theirs}, not {type_.sql}")
        found = engines.pure(lambda *_, s=question.scalar: s, question.types, question.rows)
        wrong += differences(text, question, right, found)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:60])


@pytest.mark.postgres
@pytest.mark.spark
@pytest.mark.parametrize("group", EXPRESSIONS)
def test_on_spark(group: str, connection: psycopg.Connection[Any], spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    session = spark.newSession()
    for key, value in settings_of("tiny").items():
        session.conf.set(key, value)
    wrong: list[str] = []
    failures: dict[tuple[str, str], engines.Question] = {}
    for spelled in EXPRESSIONS[group]:
        tried: list[tuple[str, engines.Question, list[Answer]]] = []
        for text, question, right in asked(connection, spelled):
            type_ = question.scalar.type
            good = [i for i, a in enumerate(right) if not beyond(a, type_) and not too_far(a)]
            rows = tuple(question.rows[i] for i in good)
            tried.append((text, replace(question, rows=rows), [right[i] for i in good]))
            for row, answer in zip(question.rows, right, strict=True):
                if beyond(answer, type_):
                    key = (row_of(question.scalar), reason(answer))
                    failures.setdefault(key, replace(question, rows=(row,)))
        found = engines.spark(session, [question for _, question, _ in tried])
        for (text, question, right), answer in zip(tried, found, strict=True):
            wrong += differences(text, question, right, answer)
    for (name, message), question in failures.items():
        try:
            answer = engines.spark(session, [question])
            wrong.append(f"{name} {question.rows} gives {answer}, not: {message}")
        except PySparkException:
            pass
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:60])


@pytest.mark.spark
def test_a_text_that_spark_rewrites_is_an_error(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    session = spark.newSession()
    for key, value in settings_of("tiny").items():
        session.conf.set(key, value)
    scalar = scalar_of("a0 ->> 'a'", (JSONB,))
    for document in REWRITTEN:
        (answer,) = engines.pure(lambda *_: scalar, (JSONB,), [(document,)])
        assert isinstance(answer, Failed), document
        with pytest.raises(PySparkException):
            engines.spark(session, [engines.Question(scalar, (JSONB,), ((document,),))])


def row_of(scalar: Scalar) -> str:
    return scalar.function if isinstance(scalar, Call) else type(scalar).__name__


def reason(answer: Answer) -> str:
    """Why it fails, without the value that it fails for."""
    return answer.message.partition(":")[0] if isinstance(answer, Failed) else "does not fit"


def kind_of(type_: Type) -> str:
    if type_.element is not None:
        return f"{kind_of(type_.element)}[]"
    return type_.sql.split("(")[0].replace("varchar", "character varying")


def kind_in_postgres(
    connection: psycopg.Connection[Any], text: str, types: tuple[Type, ...]
) -> str:
    columns = ", ".join(f"NULL::{type_.sql} AS a{i}" for i, type_ in enumerate(types))
    query = f"SELECT pg_typeof({text})::text FROM (SELECT {columns}) AS arguments"
    (found,) = connection.execute(query.replace("%", "%%")).fetchone() or ("",)
    short = {
        "timestamp without time zone": "timestamp",
        "timestamp with time zone": "timestamptz",
        "time without time zone": "time",
    }
    name = found.removesuffix("[]")
    return found.replace(name, short.get(name, name))


def differences(
    text: str, question: engines.Question, right: list[Answer], found: list[Answer]
) -> list[str]:
    return [
        f"{text} {row} is {ours!r}, not {theirs!r}"
        for row, theirs, ours in zip(question.rows, right, found, strict=True)
        if not agree(theirs, ours, question.scalar.type)
    ]
