"""Text without a collation of its own has the database's, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.plan.evaluate import evaluate
from headrace.query import BoundColumn, BoundTable, bind
from headrace.query.schema import Rules
from headrace.source.server import home_collation
from headrace.types import INTEGER, Collation, Type
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.shop import Shop, load, read

# Each takes rows by an order of text that no column gives.
ORDERED = (
    "SELECT 'a' AS ch, id FROM orders ORDER BY ch, id DESC LIMIT 2",
    "SELECT id::text AS t FROM orders ORDER BY t DESC LIMIT 2",
    "SELECT v.x FROM (VALUES ('b'), ('A'), ('ä')) v (x), customers c ORDER BY v.x LIMIT 7",
    "SELECT min(v.x), max(v.x) FROM (VALUES ('b'), ('A'), (NULL)) v (x), customers",
    "SELECT id FROM orders WHERE d::text < '2024-01-02'",
    "SELECT id FROM orders WHERE to_char(at, 'YYYY') <= id::text",
    "SELECT CASE WHEN qty > 0 THEN 'some' ELSE 'none' END AS c, id FROM orders"
    " ORDER BY c, id LIMIT 3",
    "SELECT greatest(id::text, '3') AS g FROM orders",
    "SELECT upper('a' || id::text) AS u FROM orders ORDER BY u LIMIT 3",
    "SELECT lower('ABC') AS l, min(md5(id::text)) AS m FROM orders",
    "SELECT string_agg(chr(64 + id), ',' ORDER BY chr(64 + id) DESC) AS s FROM orders",
    "SELECT u.s FROM (SELECT 'store' AS s FROM orders UNION ALL SELECT 'web' FROM lines) u"
    " ORDER BY u.s DESC LIMIT 7",
    "SELECT id, row_number() OVER (ORDER BY substr('abcde', id, 1) DESC) AS n FROM orders",
    "SELECT array_to_string(ARRAY[id, qty], '-', '?') AS t FROM orders ORDER BY t LIMIT 3",
    "SELECT 'x'::varchar(3) AS v, id FROM orders ORDER BY v, id LIMIT 1",
)


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        load(connection)
        yield connection


@pytest.mark.postgres
def test_as_postgresql_orders_it(shop: psycopg.Connection[Any]) -> None:
    assert home_collation(shop) is Collation.C
    for query in ORDERED:
        bound = bind(query, Shop(), rules=Rules(Collation.C))
        types = [column.type for column in bound.plan.columns]
        assert postgres_types(shop, query) == ours(shop, types), query
        right = bag(shop.execute(query).fetchall(), types)
        assert bag(evaluate(bound.plan, read).elements(), types) == right, query
        assert bag(evaluate(bound.written, read).elements(), types) == right, query


@pytest.mark.parametrize("query", ORDERED)
def test_elsewhere_it_is_refused(query: str) -> None:
    with pytest.raises(UserError) as caught:
        bind(query, Shop())
    assert caught.value.code in ("collation-unsupported", "unsupported-function")


def test_the_order_of_code_points_does_not_fold() -> None:
    assert bind(ORDERED[0], Shop(), rules=Rules(Collation.CODE_POINTS)).notices == ()
    with pytest.raises(UserError, match="collation C"):
        bind("SELECT lower('ABC') AS l FROM orders", Shop(), rules=Rules(Collation.CODE_POINTS))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM orders WHERE note < 'x'",
        "SELECT id FROM orders WHERE note < id::text",
        "SELECT coalesce(note, 'x') AS n FROM orders ORDER BY n LIMIT 1",
        "SELECT note || 'x' AS n FROM orders ORDER BY n LIMIT 1",
        "SELECT note || id AS n FROM orders ORDER BY n LIMIT 1",
        "SELECT CASE WHEN id > 1 THEN id::text ELSE note END AS n FROM orders ORDER BY n LIMIT 1",
        "SELECT note AS n FROM orders UNION ALL SELECT 'x' FROM lines ORDER BY n LIMIT 1",
        "SELECT lpad(note, 9, 'x') AS n FROM orders ORDER BY n LIMIT 1",
    ],
)
def test_a_column_of_another_collation_keeps_it(query: str) -> None:
    with pytest.raises(UserError) as caught:
        bind(query, Shop(), rules=Rules(Collation.C))
    assert caught.value.code == "collation-unsupported"


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("made", "collation"),
    [
        ("LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'", Collation.CODE_POINTS),
        ("LOCALE_PROVIDER libc LOCALE 'C' ENCODING 'SQL_ASCII'", Collation.OTHER),
    ],
)
def test_the_collation_of_a_database(dsn: str, made: str, collation: Collation) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        name = f"{connection.info.dbname}_other"
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 {made}")
        try:
            other = psycopg.conninfo.make_conninfo(dsn, dbname=name, client_encoding="utf8")
            with psycopg.connect(other) as there:
                assert home_collation(there) is collation
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Texts:
    """A column under collation C, and one under another that is not the database's."""

    def resolve(self, schema: str | None, name: str) -> BoundTable:
        types = {"id": INTEGER, "c": Type("text", folds=True), "o": Type("text", ordered=False)}
        columns = (BoundColumn(n, n, type_, type_.sql) for n, type_ in types.items())
        return BoundTable("t", "public", "t", tuple(columns), (("id",),))


@pytest.mark.parametrize("collation", [Collation.C, Collation.OTHER])
@pytest.mark.parametrize(
    "expression",
    [
        "string_agg('a', {} ORDER BY id)",
        "string_agg({}, ',' ORDER BY id)",
        "string_agg('a'::text, {} ORDER BY id)",
        "max(array_to_string(ARRAY['a'], {}))",
        "max(array_to_string(ARRAY['a', NULL], ',', {}))",
        "max(array_to_string(ARRAY[{}], ','))",
        "max(array_to_string('{{a}}'::text[], {}))",
        "max('a' || {})",
    ],
)
def test_a_constant_gives_up_its_collation(expression: str, collation: Collation) -> None:
    """Whatever the database has, the result has the collation of the column."""

    def ordered(column: str) -> bool:
        query = f"SELECT {expression.format(column)} AS s FROM t"
        try:
            return bind(query, Texts(), rules=Rules(collation)).plan.columns[0].type.ordered
        except UserError as error:
            if error.code != "collation-unsupported":
                raise
            return False

    assert ordered("c")
    assert not ordered("o")


def test_two_collations_that_differ_order_nothing() -> None:
    for expression in ("string_agg(c, o ORDER BY id)", "string_agg(o, c ORDER BY id)"):
        plan = bind(f"SELECT {expression} AS s FROM t", Texts(), rules=Rules(Collation.C)).plan
        assert not plan.columns[0].type.ordered


def test_distinct_texts_come_in_their_own_order() -> None:
    """That of the column, also beside a constant; under another collation nothing sorts them."""
    for collation in (Collation.C, Collation.OTHER):
        bind("SELECT string_agg(DISTINCT c, ',') AS s FROM t", Texts(), rules=Rules(collation))
        with pytest.raises(UserError, match="ORDER BY"):
            bind("SELECT string_agg(DISTINCT o, ',') AS s FROM t", Texts(), rules=Rules(collation))
