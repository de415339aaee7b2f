"""Three answers to the same call: PostgreSQL's, Spark's and the pure evaluator's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa

from headrace.algebra.scalar import Column, Scalar, Value
from headrace.functions import EvaluationError
from headrace.plan.evaluate import scalar as evaluate_scalar
from headrace.render.scalars import render_scalar
from headrace.types import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Value, ...]


@dataclass(frozen=True)
class Failed:
    """The engine reported an error."""

    message: str


Answer = Value | Failed
# chr(0) is an error of another class.
ERRORS = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)


def columns_of_row(types: Sequence[Type]) -> tuple[Column, ...]:
    return tuple(Column(f"a{i}", type_) for i, type_ in enumerate(types))


def postgres(
    connection: psycopg.Connection[Any], template: str, types: Sequence[Type], rows: Sequence[Row]
) -> list[Answer]:
    """The rows in one query if none fails, else one by one; char comes back without its blanks."""
    expression = template.format(*(f"a{i}" for i in range(len(types))))
    names = ", ".join(f"a{i} {type_.sql}" for i, type_ in enumerate(types))
    connection.execute("DROP TABLE IF EXISTS arguments")
    connection.execute(f"CREATE TEMP TABLE arguments (n int, {names})")
    places = ", ".join(["%s"] * (len(types) + 1))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO arguments VALUES ({places})",
            [(n, *map(adapted, row)) for n, row in enumerate(rows)],
        )
    query = f"SELECT {expression} FROM arguments"
    try:
        return [row[0] for row in connection.execute(f"{query} ORDER BY n").fetchall()]
    except ERRORS:
        pass
    answers: list[Answer] = []
    for n in range(len(rows)):
        try:
            found = connection.execute(f"{query} WHERE n = {n}").fetchone()
            assert found is not None
            answers.append(found[0])
        except ERRORS as error:
            answers.append(Failed(str(error.diag.message_primary)))
    return answers


def adapted(value: Value) -> Any:
    """As psycopg takes it: an array is a list."""
    return list(value) if isinstance(value, tuple) else value


def postgres_type(connection: psycopg.Connection[Any], template: str, types: Sequence[Type]) -> str:
    """The type PostgreSQL gives the expression, without length or digits."""
    arguments = (f"NULL::{type_.sql}" for type_ in types)
    found = connection.execute(f"SELECT pg_typeof({template.format(*arguments)})::text").fetchone()
    assert found is not None
    return str(found[0])


def pure(build: Callable[..., Scalar], types: Sequence[Type], rows: Sequence[Row]) -> list[Answer]:
    columns = columns_of_row(types)
    expression = build(*columns)
    answers: list[Answer] = []
    for row in rows:
        try:
            answers.append(evaluate_scalar(expression, dict(zip(columns, row, strict=True))))
        except EvaluationError as error:
            answers.append(Failed(str(error)))
    return answers


@dataclass(frozen=True)
class Question:
    """An expression over columns a0, a1, … and the rows to evaluate it on."""

    scalar: Scalar
    types: tuple[Type, ...]
    rows: tuple[Row, ...]


def spark(session: SparkSession, questions: Sequence[Question]) -> list[list[Value]]:
    """All questions in one query: each is a column over its own argument columns.

    Where another question has more rows they are NULL, which no function fails on.
    """
    height = max(len(question.rows) for question in questions)
    names: list[str] = []
    arrays: list[pa.Array] = []
    ddl: list[str] = []
    expressions: list[str] = []
    for q, question in enumerate(questions):
        for i, type_ in enumerate(question.types):
            values = [row[i] for row in question.rows]
            values += [None] * (height - len(values))
            names.append(f"q{q}a{i}")
            arrays.append(pa.array(values, type_.arrow))
            ddl.append(f"q{q}a{i} {type_.spark}")
        renamed = _renamed(question.scalar, f"q{q}")
        expressions.append(render_scalar(renamed).sql(dialect="spark") + f" AS r{q}")
    names.append("n")
    arrays.append(pa.array(range(height), pa.int64()))
    ddl.append("n BIGINT")
    table = pa.Table.from_arrays(arrays, names=names)
    session.createDataFrame(table, schema=", ".join(ddl)).createOrReplaceTempView("arguments")
    query = f"SELECT n, {', '.join(expressions)} FROM arguments"
    result = session.sql(query).toArrow().sort_by("n")
    return [
        result[f"r{q}"].slice(0, len(question.rows)).to_pylist()
        for q, question in enumerate(questions)
    ]


def _renamed(scalar: Scalar, prefix: str) -> Scalar:
    from headrace.algebra.scalar import substitute

    return substitute(scalar, lambda column: Column(prefix + column.id, column.type))
