"""White space as PostgreSQL's lexer knows it: everything else is a letter, or an error."""

from __future__ import annotations

import psycopg
import pytest

from headrace.errors import UserError
from headrace.query.parse import parse
from headrace.statements.parse import parse as parse_statements

OTHERS = ("\u00a0", "\u3000", "\u2003", "\u0085", "\u1680", "\x1f")
FORMS = ("SELECT 1 AS a,{}2 AS b", "SELECT 1{}AS a", "SELECT{}1 AS a", "SELECT 1 AS a{}")


@pytest.mark.parametrize("character", OTHERS)
@pytest.mark.parametrize("form", FORMS)
def test_other_white_space_separates_nothing(form: str, character: str) -> None:
    parse(form.format(" "))
    with pytest.raises(UserError) as caught:
        parse(form.format(character))
    assert caught.value.code == "syntax-error"
    assert f"U+{ord(character):04X}" in caught.value.message


@pytest.mark.postgres
@pytest.mark.parametrize("character", OTHERS)
def test_postgresql_reads_none_of_these_either(dsn: str, character: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for form in FORMS[1:3]:
            with pytest.raises(psycopg.Error):
                connection.execute(form.format(character))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'a\u00a0b' AS a, 1 AS \"b\u3000c\"",
        "SELECT 1 AS a -- \u00a0\n, 2 AS b /* \u00a0 -- \u3000 /* \u00a0 */ \u00a0 */ FROM x",
        "SELECT\t1\r\n AS\fa\v",
        "SELECT $$\u00a0$$ AS a, E'\\'\u00a0' AS b",
    ],
)
def test_where_it_may_stand(text: str) -> None:
    parse(text)


def test_between_the_words_of_a_statement() -> None:
    parse_statements("DROP STREAM TABLE x")
    with pytest.raises(UserError) as caught:
        parse_statements("DROP\u00a0STREAM TABLE x")
    assert caught.value.code == "syntax-error"


@pytest.mark.parametrize("text", ["SELECT id >+ FROM x", "SELECT +", "SELECT 1 + + FROM x"])
def test_a_plus_without_an_operand(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.code == "syntax-error"
