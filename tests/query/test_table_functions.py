"""Functions and VALUES in FROM: the rows that PostgreSQL gives, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.types.string import TextLoader

from headrace.errors import UserError
from headrace.functions import EvaluationError
from headrace.plan.evaluate import evaluate
from headrace.query import bind
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.rows import FUNCTIONS, Documents, load, read


@pytest.fixture(scope="module")
def documents(server: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA documents")
        connection.execute("SET search_path TO documents; SET timezone TO 'UTC'")
        load(connection)
        connection.adapters.register_loader("jsonb", TextLoader)
        yield connection
        connection.execute("DROP SCHEMA documents CASCADE")


@pytest.mark.postgres
@pytest.mark.parametrize("query", FUNCTIONS)
def test_rows_are_postgresql_s(query: str, documents: psycopg.Connection[Any]) -> None:
    bound = bind(query, Documents())
    cursor = documents.execute(query)
    assert cursor.description is not None
    assert [column.name for column in cursor.description] == list(bound.names)
    types = [column.type for column in bound.plan.columns]
    assert postgres_types(documents, query) == ours(documents, types)
    right = bag(cursor.fetchall(), types)
    assert bag(evaluate(bound.plan, read).elements(), types) == right
    assert bag(evaluate(bound.written, read).elements(), types) == right
    assert right


FAILING = (
    "SELECT g FROM docs, generate_series(1, id, id - 1) AS g",
    "SELECT g FROM docs, generate_series(1.5, id, id - 1.0) AS g",
    "SELECT g FROM docs, generate_series(at, at, interval '0 day') AS g",
    "SELECT e FROM docs, jsonb_array_elements_text(object) AS e",
    "SELECT e FROM docs, jsonb_each_text(list) AS e (e, f)",
    "SELECT e FROM docs, jsonb_object_keys(list) AS e",
)


@pytest.mark.postgres
@pytest.mark.parametrize("query", FAILING)
def test_an_error_is_one_there_too(query: str, documents: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error):
        documents.execute(query)
    bound = bind(query, Documents())
    with pytest.raises(EvaluationError):
        evaluate(bound.plan, read)


REFUSED: tuple[tuple[str, str, str], ...] = (
    ("SELECT 1 AS x", "unsupported-query", "no table"),
    ("VALUES (1), (2)", "unsupported-query", "no table"),
    ("SELECT g FROM generate_series(1, 3) AS g", "unsupported-query", "no table"),
    ("SELECT id FROM docs, (VALUES (1), (1, 2)) AS v", "invalid-query", "same length"),
    ("SELECT id FROM docs, (VALUES (1), (TRUE)) AS v", "invalid-query", "VALUES types"),
    ("SELECT id FROM docs, (VALUES (id)) AS v", "unknown-column", "id"),
    ("SELECT id FROM docs, (VALUES (1)) AS v (a, b)", "invalid-query", "1 columns"),
    ("SELECT id FROM docs WITH ORDINALITY", "unsupported-query", "ORDINALITY"),
    ("SELECT id FROM docs, json_each(object)", "unsupported-function", "json_each"),
    ("SELECT id FROM docs, mine.series(1)", "unsupported-function", "mine.series"),
    ('SELECT id FROM docs, "rows"(1)', "unsupported-function", "rows"),
    ("SELECT id FROM docs, pg_ls_dir('.')", "unsupported-function", "pg_ls_dir"),
    ("SELECT id FROM docs, unnest(words)", "invalid-query", "unnest"),
    ("SELECT id FROM docs, string_to_table(words, words)", "unsupported-function", "text"),
    ("SELECT id FROM docs, string_to_table(words, NULL)", "unsupported-function", "text"),
    (
        "SELECT id FROM docs, regexp_split_to_table(words, 'a*')",
        "unsupported-function",
        "regexp_split_to_table",
    ),
    (
        "SELECT id FROM docs, regexp_split_to_table(words, 'a|ab')",
        "unsupported-function",
        "regexp_split_to_table",
    ),
    (
        "SELECT id FROM docs, generate_series(1.5::float8, id)",
        "unsupported-function",
        "generate_series",
    ),
    (
        "SELECT id FROM docs, generate_series(at, at, interval '1 month') AS g",
        "unsupported-function",
        "generate_series",
    ),
    (
        "SELECT id FROM docs, ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS r",
        "unsupported-query",
        "ROWS FROM",
    ),
    (
        "SELECT d.id FROM docs AS d RIGHT JOIN generate_series(1, d.id) ON TRUE",
        "invalid-query",
        "invalid reference to FROM-clause entry",
    ),
    ("SELECT generate_series(1, id) + 1 FROM docs", "unsupported-query", "generate_series"),
    ("SELECT unnest(ARRAY[1]), unnest(ARRAY[2]) FROM docs", "unsupported-query", "unnest"),
    ("SELECT unnest(ARRAY[1]), count(*) FROM docs", "unsupported-query", "unnest"),
    ("SELECT generate_series(1, id) FROM docs GROUP BY id", "unsupported-query", "groups"),
    ("SELECT jsonb_each_text(object) FROM docs", "unsupported-query", "several columns"),
    ("SELECT id FROM docs WHERE generate_series(1, 2) = 1", "unsupported-function", "series"),
    (
        "SELECT id FROM docs INTERSECT SELECT id, big FROM docs",
        "invalid-query",
        "INTERSECT",
    ),
    (
        "SELECT list FROM docs EXCEPT ALL SELECT object FROM docs",
        "unsupported-type",
        "EXCEPT",
    ),
    (
        "SELECT id FROM docs EXCEPT SELECT words FROM docs",
        "invalid-query",
        "EXCEPT types",
    ),
)


@pytest.mark.parametrize(("query", "code", "word"), REFUSED)
def test_what_is_refused(query: str, code: str, word: str) -> None:
    with pytest.raises(UserError) as refused:
        bind(query, Documents())
    assert refused.value.code == code
    assert word in refused.value.message
