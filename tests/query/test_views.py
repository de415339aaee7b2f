"""Views in FROM: what PostgreSQL prints of a view is bound in place of its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from headrace.errors import UserError
from headrace.plan.evaluate import evaluate
from headrace.query import BoundTable, BoundView, bind, table_names
from tests.query.column_types import ours, postgres_types
from tests.query.comparable_rows import bag
from tests.query.golden import goldens
from tests.query.shop import Shop, load, read


@dataclass(frozen=True)
class WithViews:
    """The shop and some views of the schema public."""

    views: tuple[BoundView, ...]

    def resolve(self, schema: str | None, name: str) -> BoundTable | BoundView | None:
        if schema in (None, "public"):
            for view in self.views:
                if view.name == name:
                    return view
        return Shop().resolve(schema, name)


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        load(connection)
        yield connection


def create_view(connection: psycopg.Connection[Any], name: str, query: str) -> BoundView:
    """A view, as it is printed where nothing but pg_catalog is on the search path."""
    connection.execute(f"CREATE VIEW {name} AS {query}")
    with connection.transaction():
        connection.execute("SET LOCAL search_path = ''")
        row = connection.execute("SELECT pg_get_viewdef(%s::regclass)", [f"public.{name}"])
        ((text,),) = row.fetchall()
    columns = connection.execute(f"SELECT * FROM {name} LIMIT 0").description
    assert columns is not None
    return BoundView("public", name, text, tuple(column.name for column in columns))


def assert_same(connection: psycopg.Connection[Any], query: str, *views: BoundView) -> None:
    bound = bind(query, WithViews(views))
    types = [column.type for column in bound.plan.columns]
    cursor = connection.execute(query)
    assert cursor.description is not None
    assert [column.name for column in cursor.description] == list(bound.names)
    right = bag(cursor.fetchall(), types)
    assert postgres_types(connection, query) == ours(connection, types)
    assert bag(evaluate(bound.plan, read).elements(), types) == right
    assert bag(evaluate(bound.written, read).elements(), types) == right


@pytest.mark.postgres
def test_every_golden_query_as_a_view(shop: psycopg.Connection[Any]) -> None:
    for number, golden in enumerate(goldens()):
        view = create_view(shop, f"v{number}", golden.query)
        assert_same(shop, f"SELECT * FROM v{number}", view)


# How PostgreSQL prints these differs from how they are written.
PRINTED = (
    "id IN (1, 2, 3)",
    "id NOT IN (1, 2, NULL)",
    "note IN ('x', 'y')",
    "region IN ('north', 'a  ')",
    "region NOT IN ('north', NULL)",
    "code IN ('a', 'ab ')",
    "code = 'a'",
    "region = code",
    "note LIKE 'x%'",
    "note NOT LIKE 'x%'",
    "region LIKE '_orth'",
    "amount BETWEEN -1 AND 2.5",
    "qty NOT BETWEEN -1 AND 2",
    "d > '2024-01-01'",
    "at < '2024-01-01 12:00:00.5'",
    "d = at",
    "vip IS NOT TRUE",
    "vip IS NOT DISTINCT FROM NULL",
    "NOT vip",
    "weight < 2",
    "weight = 1.5",
    "big = 5",
    "amount = -7.25",
    "coalesce(note, 'none') = nullif(region, 'x')",
    "CASE qty WHEN 1 THEN 'one' WHEN -3 THEN note END IS NULL",
    "\"Name\" < 'b'",
    '"Name" || id::text = note::varchar(3)',
    "note COLLATE \"C\" >= 'x'",
    "mod(id, 2) + abs(- qty) > +1",
    "amount::numeric(12,1) / 3 > id::bigint",
    "position('x' IN note) > 0",
    "\"position\"(note, 'x') > 0",
)


@pytest.mark.postgres
def test_printed_conditions(shop: psycopg.Connection[Any]) -> None:
    table = "orders o JOIN customers c USING (id)"
    for number, condition in enumerate(PRINTED):
        query = f"SELECT id, {condition} AS x, region, amount FROM {table} WHERE {condition}"
        view = create_view(shop, f"v{number}", query)
        assert_same(shop, f"SELECT * FROM v{number}", view)


@pytest.mark.postgres
def test_views_over_views(shop: psycopg.Connection[Any]) -> None:
    one = create_view(
        shop, "one", "SELECT customer AS who, sum(amount) AS t FROM orders GROUP BY 1"
    )
    two = create_view(shop, "two", "SELECT DISTINCT t FROM one UNION ALL SELECT n FROM lines")
    three = create_view(
        shop,
        "three",
        "WITH one AS (SELECT t + 1 AS t FROM two) SELECT a.t, b.who FROM one a, public.one b",
    )
    query = "SELECT v.t, count(*) FROM three AS v (t) JOIN lines ON who = orders GROUP BY v.t"
    assert_same(shop, query, one, two, three)
    assert set(table_names(three.query)) == {("public", "one"), ("public", "two")}


def test_names_in_a_view_need_their_schema() -> None:
    view = BoundView("public", "v", " SELECT id FROM orders;", ("id",))
    with pytest.raises(UserError) as raised:
        bind("SELECT id FROM v", WithViews((view,)))
    assert raised.value.code == "unknown-table"
    assert raised.value.detail == 'In view "public.v": At line 1, column 17.'


def test_with_does_not_reach_into_a_view() -> None:
    view = BoundView("public", "v", "SELECT id FROM public.orders", ("x",))
    bound = bind(
        "WITH orders AS (SELECT n FROM lines) SELECT public.v.x FROM v", WithViews((view,))
    )
    assert bound.names == ("x",)
    assert bound.key == (0,)


def test_what_a_view_uses_is_refused_with_its_name() -> None:
    inner = BoundView("public", "inner", "SELECT now() AS t FROM public.orders", ("t",))
    outer = BoundView("public", "outer", 'SELECT t FROM public."inner"', ("t",))
    with pytest.raises(UserError, match="current time") as raised:
        bind('SELECT t FROM "outer"', WithViews((inner, outer)))
    assert raised.value.detail == 'In view "public.inner": At line 1, column 8.'
