"""Names of attached tables in a text give way to what stands in for them, and nothing else."""

from __future__ import annotations

import pytest

from headrace.query import table_names
from headrace.query.query_text import with_shadows

SHADOWS = {("crm.public", "customer"): "pg_temp.one", ("crm.Odd Place", "Öl"): "pg_temp.two"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM crm.public.customer", "SELECT * FROM pg_temp.one AS customer"),
        ("SELECT c.id FROM crm.public.customer c", "SELECT c.id FROM pg_temp.one c"),
        ("SELECT c.id FROM crm.public.customer AS c", "SELECT c.id FROM pg_temp.one AS c"),
        ("SELECT 1 FROM CRM . Public\n.Customer", "SELECT 1 FROM pg_temp.one AS Customer"),
        ('SELECT 1 FROM crm."Odd Place"."Öl"', 'SELECT 1 FROM pg_temp.two AS "Öl"'),
        (
            "WITH a AS (SELECT * FROM crm.public.customer) SELECT * FROM a, crm.public.customer x",
            "WITH a AS (SELECT * FROM pg_temp.one AS customer) SELECT * FROM a, pg_temp.one x",
        ),
        (
            "SELECT 'crm.public.customer', crm.public FROM public.customer crm",
            "SELECT 'crm.public.customer', crm.public FROM public.customer crm",
        ),
        ("SELECT 1 FROM crm.public.other", "SELECT 1 FROM crm.public.other"),
        (
            "SELECT (SELECT count(*) FROM crm.public.customer WHERE id = o.id) FROM o",
            "SELECT (SELECT count(*) FROM pg_temp.one AS customer WHERE id = o.id) FROM o",
        ),
    ],
)
def test_only_the_names_of_tables_give_way(text: str, expected: str) -> None:
    assert with_shadows(text, SHADOWS) == expected


def test_a_database_stands_before_the_schema_unless_it_is_the_home_database() -> None:
    text = "SELECT 1 FROM shop.public.a, crm.public.b, public.c, d"
    home = {("shop.public", "a"), ("crm.public", "b"), ("public", "c"), (None, "d")}
    assert set(table_names(text)) == home
    assert set(table_names(text, "shop")) == home - {("shop.public", "a")} | {("public", "a")}


def test_a_schema_with_a_dot_in_its_name_is_left_alone() -> None:
    assert table_names('SELECT 1 FROM "shop.public".a', "shop") == (("shop.public", "a"),)
