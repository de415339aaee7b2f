"""Code, tests and documents use the field's words, not private ones."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FILES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src" / "headrace").rglob("*.py"),
    *(file for ending in ("md", "py", "sql") for file in TESTS.rglob(f"*.{ending}")),
]
PRIVATE = re.compile(
    r"\b(anew|told|tells|wish(es|ed)?|news|lets? go of|stands? still|comes? along|summ(ed|ing) up"
    r"|kept otherwise|is to be had|dirt)\b",
    re.IGNORECASE,
)
# This list of words has examples of them.
LISTS = frozenset({Path(__file__)})


def private_words(text: str) -> list[str]:
    return [found[0] for found in PRIVATE.finditer(text)]


def names_as_words(text: str) -> str:
    """Return the text with the words of its names set apart."""
    return text.replace("_", " ")


def words_of(file: Path) -> list[str]:
    """Return the private words of a file, of names within it, and of its own name."""
    return private_words(names_as_words(f"{file.stem}\n{file.read_text(encoding='utf-8')}"))


def test_no_private_word() -> None:
    words = {file: words_of(file) for file in FILES if file not in LISTS}
    assert {
        file.relative_to(ROOT).as_posix(): found for file, found in words.items() if found
    } == {}


def test_private_words_are_recognised() -> None:
    assert private_words("It is computed anew, as it was told; news of it.") == [
        "anew",
        "told",
        "news",
    ]


def test_private_words_in_names_are_recognised() -> None:
    text = "def test_it_lets_go_of_news(told_before): return has_news(told_before)"
    words = ["lets go of", "news", "told", "news", "told"]
    assert private_words(names_as_words(text)) == words
