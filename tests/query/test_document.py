"""docs/sql.md shows the tables of the code as they are."""

from __future__ import annotations

from pathlib import Path

from docs.generators.blocks import refreshed
from docs.generators.sql import sql_blocks
from headrace.functions import FUNCTIONS
from headrace.query.clauses import MAXIMUM_DEPTH

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"


def test_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == refreshed(page, sql_blocks())


def test_every_function_is_shown() -> None:
    shown = sql_blocks()["functions"]
    assert all(function.syntax.split(",")[0] in shown.replace("\\|", "|") for function in FUNCTIONS)


def test_depth_is_the_one_in_the_code() -> None:
    assert f"nested {MAXIMUM_DEPTH} levels deep" in PAGE.read_text(encoding="utf-8").replace(
        "\n", " "
    )
