"""Names of operators, as PostgreSQL's lexer reads them."""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import product
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InternalError, UserError
from headrace.query import bind, table_names
from headrace.query.guards import operator_names
from headrace.query.parse import parse
from tests.query.shop import Shop

CHARACTERS = "+-*/<>=~!@#%^&|`?"


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("id&-1", "&-"),
        ("id |+| 1", "|+|"),
        ("id @@@ 1", "@@@"),
        ("id==1", "=="),
        ("id <=> 1", "<=>"),
        ("id ** 2", "**"),
        ("id %-1", "%-"),
        ("~-id", "~-"),
        ("!!id", "!!"),
        ("id ?? 1", "??"),
        ("id // 2", "//"),
        ("id ! = 1", "!"),
        ("id ` 1", "`"),
        ("id ?::int", "?"),
        ("id <<-> 1", "<<->"),
        ("@id", "@"),
        ("@-id", "@-"),
    ],
)
def test_an_unknown_operator_is_refused_by_its_name(expression: str, name: str) -> None:
    with pytest.raises(UserError) as refused:
        bind(f"SELECT {expression} AS x FROM orders", Shop())
    assert refused.value.code == "unsupported-function"
    assert refused.value.message == f"operator {name} is not maintained"


def test_an_operator_of_a_schema_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        bind("SELECT id OPERATOR(public.+) 1 AS x FROM orders", Shop())
    assert refused.value.code == "unsupported-function"
    assert refused.value.message == "OPERATOR is not maintained"


def test_a_name_with_unicode_escapes_is_not_an_operator() -> None:
    with pytest.raises(UserError) as refused:
        bind('SELECT u&"d" AS x FROM (SELECT id AS u, id AS d FROM orders) s', Shop())
    assert refused.value.code == "unsupported-query"


@pytest.mark.parametrize(
    "expression",
    [
        "id*-1",
        "id+-1",
        "id<-1",
        "id<>-1",
        "id>=-1",
        "id<<-id",
        "id & -1",
        "- -id",
        "+-id",
        "id*/* c */2",
        "id+--c\n1",
        "status|| -id",
        "status!~'a&-b'",
        "status !~~* 'a|+|b'",
        'id AS "a&-b"',
        "$$a&-b$$",
        "$q$a@@@b$q$",
        "E'a&-b'",
        "count(*)",
    ],
)
def test_known_operators_are_read(expression: str) -> None:
    parse(f"SELECT {expression} FROM orders")


@pytest.mark.postgres
def test_runs_are_split_as_postgresql_splits_them(dsn: str) -> None:
    """Between the brackets stands exactly one name; PostgreSQL says which one is too many."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        several = 0
        for run in map("".join, (*product(CHARACTERS, repeat=2), *product("+-*=>@|", repeat=4))):
            if "--" in run or "/*" in run:
                continue
            first, *rest = operator_names(run, 0)
            assert "".join([first, *rest]) == run
            several += bool(rest)
            # => is a name that is not an operator's.
            unexpected = first if first == "=>" else rest[0] if rest else None
            assert one_too_many(connection, run) == unexpected, run
    assert several > 100


def one_too_many(connection: psycopg.Connection[Any], run: str) -> str | None:
    """The second name in a run of operator characters, as PostgreSQL reads it."""
    try:
        connection.execute(f"SELECT 1 OPERATOR({run}) 1".encode())
    except psycopg.errors.UndefinedFunction:
        return None
    except psycopg.errors.SyntaxError as error:
        return (error.diag.message_primary or "").partition('"')[2].rpartition('"')[0]
    return None


@given(st.text([*CHARACTERS, "a", " ", "1", "'"], max_size=12))
def test_no_text_ends_in_an_error_of_another_kind(text: str) -> None:
    """Whatever stands between two columns is bound, or refused by a code."""
    with suppress(UserError):
        bind(f"SELECT id {text} id AS x FROM orders", Shop())


def test_an_exception_of_our_own_names_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser is replaced by one that fails as a mistake of ours would."""

    def failing(text: str) -> None:
        raise AttributeError("'NoneType' object has no attribute 'key'")

    monkeypatch.setattr(sys.modules["headrace.query.bind"], "parse", failing)
    for read in (lambda text: bind(text, Shop()), table_names):
        with pytest.raises(InternalError) as refused:
            read("SELECT id FROM orders")
        assert refused.value.code == "internal-error"
        assert refused.value.message == "the query could not be read: AttributeError"
        assert refused.value.detail == "'NoneType' object has no attribute 'key'"
