"""Names of types: those of other systems and quoted ones are no built-in types."""

from __future__ import annotations

import psycopg
import pytest

from headrace.errors import UserError
from headrace.query import bind
from headrace.query.type_names import PostgresTokenizer
from tests.query.shop import Shop


@pytest.mark.parametrize(
    "name",
    [
        "string",
        "double",
        "number",
        "long",
        "clob",
        "varchar2",
        '"char"',
        '"int"',
        '"Text"',
        '"TEXT"',
    ],
)
def test_a_name_that_postgresql_does_not_have_is_refused(name: str) -> None:
    for cast in (f"CAST(id AS {name})", f"id::{name}", f"id::{name}[]"):
        with pytest.raises(UserError) as refused:
            bind(f"SELECT {cast} AS x FROM orders", Shop())
        assert refused.value.code == "unsupported-type"


@pytest.mark.postgres
def test_every_name_that_is_taken_for_a_type_is_one_in_postgresql(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        taken = 0
        for name in [*PostgresTokenizer.KEYWORDS, *PostgresTokenizer.SINGLE_TOKENS]:
            for written in (name, f'"{name.lower()}"'):
                if '""' in written or not name[0].isalpha():
                    continue
                try:
                    bind(f"SELECT id, NULL::{written} AS x FROM orders", Shop())
                except UserError:
                    continue
                taken += 1
                connection.execute(f"SELECT NULL::{written}")
    assert taken > 20


def test_the_names_stay_names_of_columns() -> None:
    bound = bind(
        "SELECT string, o.double FROM (SELECT id AS string, id AS double FROM orders) o", Shop()
    )
    assert bound.names == ("string", "double")
