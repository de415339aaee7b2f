from __future__ import annotations

import pytest

from headrace.cli.targets import find, sql_name
from headrace.lifecycle.names import parse_name
from tests.cli.examples import table

TABLES = (table("public.totals"), table("sales.totals"), table("sales.Größe 1"), table("x.y"))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("totals", "public.totals"),
        ("TOTALS", "public.totals"),
        ("sales.totals", "sales.totals"),
        ("y", "x.y"),
        ("public.y", None),
        ('"Größe 1"', "sales.Größe 1"),
        ('sales."Größe 1"', "sales.Größe 1"),
        ("nothing", None),
    ],
)
def test_which_table_a_name_means(given: str, meant: str | None) -> None:
    found = find(TABLES, given)
    assert (found and found.name) == meant


@pytest.mark.parametrize("name", ["totals", "Größe 1", 'a"b', "a.b", "Upper", "東京", "1st"])
def test_a_shown_name_can_be_read_again(name: str) -> None:
    assert parse_name(sql_name(f"public.{name}"), "other") == ("public", name)
