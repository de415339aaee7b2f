"""What the documents took from the code is what the code gives now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

import pytest

from docs.generate import PAGES, pure_blocks
from docs.generators.blocks import block_names, refreshed
from docs.generators.types import SAMPLES
from headrace.types import KINDS
from tests.docs.pages import DOCS, pages, read

MARKED = {os.path.relpath(page, DOCS): page for page in pages() if block_names(read(page))}


@cache
def blocks() -> Mapping[str, Mapping[str, str]]:
    return pure_blocks()


@pytest.mark.parametrize("page", sorted({*MARKED} - {"tour.md"}))
def test_blocks_are_up_to_date(page: str) -> None:
    text = read(DOCS / page)
    assert refreshed(text, blocks()[page]) == text, "run `make docs`"


@pytest.mark.parametrize("page", [name for name, _ in PAGES])
def test_generated_pages_exist(page: str) -> None:
    assert read(DOCS / page).startswith("# ")


def test_no_page_has_blocks_that_nobody_fills() -> None:
    filled = {(DOCS / page).resolve() for page in (*blocks(), "tour.md")}
    assert {page.resolve() for page in MARKED.values()} == filled


def test_a_block_without_a_filler_is_an_error() -> None:
    page = "<!-- generated: a -->\nold\n<!-- end -->\n"
    assert refreshed(page, {"a": "new"}) == "<!-- generated: a -->\n\nnew\n\n<!-- end -->\n"
    for blocks in ({}, {"b": "new"}, {"a": "new", "b": "new"}):
        with pytest.raises(ValueError, match="blocks"):
            refreshed(page, blocks)


def test_every_kind_of_type_is_in_the_table() -> None:
    table = blocks()["types.md"]["types"]
    assert len(table.splitlines()) == 2 + sum(len(SAMPLES.get(kind.name, (0,))) for kind in KINDS)
