"""Every row of the table of functions means the same in PostgreSQL, on Spark and in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from headrace.algebra.scalar import Literal, Scalar
from headrace.functions import call, cast
from headrace.spark.profiles import settings_of
from headrace.types import TEXT, Type
from headrace.types.kinds import KIND_BY_NAME
from tests.functions import engines
from tests.functions.cases import CASES, LIKED, PATTERNS, Cases
from tests.functions.casts import CASTS
from tests.functions.comparison import beyond, same
from tests.functions.engines import Answer, Failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TEMPLATES = {
    "negate": "(- {0})",
    "abs": "abs({0})",
    "is not distinct from": "({0} IS NOT DISTINCT FROM {1})",
    "not": "(NOT {0})",
    "is null": "({0} IS NULL)",
    "case": "(CASE WHEN {0} THEN {1} ELSE {2} END)",
    "coalesce": "coalesce({0}, {1})",
    "nullif": "nullif({0}, {1})",
    "length": "length({0})",
}


@dataclass(frozen=True)
class Call:
    """A call in both spellings."""

    function: str
    template: str
    build: Callable[..., Scalar]
    cases: Cases


def calls_of(name: str) -> Iterator[Call]:
    if name == "cast":
        for target, cases in CASTS:
            yield Call(
                name,
                f"CAST({{0}} AS {target.sql})",
                lambda column, target=target: cast(column, target),
                cases,
            )
    elif name == "like":
        for pattern in PATTERNS:
            quoted = pattern.replace("'", "''").replace("{", "{{").replace("}", "}}")
            yield Call(
                name,
                f"({{0}} LIKE '{quoted}')",
                lambda text, pattern=pattern: call("like", text, Literal(pattern, TEXT)),
                LIKED,
            )
    else:
        for cases in CASES[name]:
            template = TEMPLATES.get(name, "({0} " + name + " {1})")
            if name == "in":
                items = ", ".join(f"{{{i}}}" for i in range(1, len(cases.types)))
                template = f"({{0}} IN ({items}))"
            yield Call(name, template, lambda *columns: call(name, *columns), cases)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for key, value in settings_of("tiny").items():
        session.conf.set(key, value)
    return session


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("name", [*CASES, "cast"])
def test_three_engines_agree(
    name: str, connection: psycopg.Connection[Any], session: SparkSession
) -> None:
    questions: list[engines.Question] = []
    expected: list[list[Answer]] = []
    errors: dict[tuple[str, str], engines.Question] = {}
    wrong: list[str] = []
    for each in calls_of(name):
        types, rows = each.cases.types, each.cases.rows
        scalar = each.build(*engines.columns_of_row(types))
        answers = engines.postgres(connection, each.template, types, rows)
        wrong += type_difference(connection, each, scalar.type)
        python = engines.pure(each.build, types, rows)
        wrong += differences(each, rows, answers, python, scalar.type, "Python")
        good = [i for i, answer in enumerate(answers) if not beyond(answer, scalar.type)]
        questions.append(engines.Question(scalar, types, tuple(rows[i] for i in good)))
        expected.append([answers[i] for i in good])
        for i in set(range(len(rows))) - set(good):
            answer = answers[i]
            message = answer.message if isinstance(answer, Failed) else "does not fit"
            question = engines.Question(scalar, types, (rows[i],))
            errors.setdefault((scalar.type.kind, message), question)
    found = engines.spark(session, questions)
    for each, question, right, answer in zip(
        calls_of(name), questions, expected, found, strict=True
    ):
        kind = question.scalar.type
        wrong += differences(each, question.rows, right, answer, kind, "Spark")
    for (kind_name, message), question in errors.items():
        wrong += must_fail(session, name, kind_name, message, question)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:40])


def must_fail(
    session: SparkSession, name: str, kind: str, message: str, question: engines.Question
) -> list[str]:
    from pyspark.errors import PySparkException

    try:
        found = engines.spark(session, [question])
    except PySparkException:
        return []
    types = ", ".join(type_.sql for type_ in question.types)
    return [f"Spark: {name}({types}){question.rows[0]} gives {found[0]}, not: {message}"]


def type_difference(connection: psycopg.Connection[Any], each: Call, type_: Type) -> list[str]:
    theirs = engines.postgres_type(connection, each.template, each.cases.types)
    found = connection.execute("SELECT %s::regtype::text", [theirs]).fetchone()
    kind = KIND_BY_NAME[type_.kind].name
    ours = connection.execute("SELECT %s::regtype::text", [kind]).fetchone()
    if found == ours:
        return []
    return [f"type of {each.template}{[t.sql for t in each.cases.types]}: {theirs}, not {ours}"]


def differences(
    each: Call,
    rows: Sequence[engines.Row],
    right: Sequence[Answer],
    found: Sequence[Answer],
    type_: Type,
    engine: str,
) -> list[str]:
    types = ", ".join(t.sql for t in each.cases.types)
    return [
        f"{engine}: {each.template}({types}){row} is {b!r}, not {a!r}"
        for row, a, b in zip(rows, right, found, strict=True)
        if not same(a, b, type_)
    ]
