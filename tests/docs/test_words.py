"""The glossary has every word that the tour goes by, each once; the tour passes every folder."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT, links, prose, titles

WORD = re.compile(r"^\| (?P<words>[^|]+?) \|", re.MULTILINE)


def glossary() -> list[str]:
    cells = [found["words"] for found in WORD.finditer(prose(DOCS / "glossary.md"))]
    return [
        word.strip() for cell in cells if cell not in ("word", "---") for word in cell.split(",")
    ]


def test_every_title_of_the_tour_is_a_word_of_the_glossary() -> None:
    words = glossary()
    assert not [title for title in titles(DOCS / "tour.md", 2) if title.lower() not in words]


def test_one_entry_a_word() -> None:
    words = glossary()
    assert len(words) == len(set(words))


def test_the_tour_passes_through_every_folder() -> None:
    sources = ROOT / "src" / "headrace"
    folders = {path.parent.relative_to(sources).parts[:1] for path in sources.rglob("*.py")} - {()}
    linked = {
        (DOCS / target).resolve().relative_to(sources.resolve()).parts[:1]
        for _, target in links(DOCS / "tour.md")
        if "src/headrace" in target
    }
    assert {name for (name,) in folders} <= {name for (name,) in linked}
