"""Code and documents use the field's words, not private ones."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src" / "headrace").rglob("*.py"),
]
# `dirt` is a table in the source database, and what is there makes a source `dirty`.
PRIVATE = re.compile(
    r"\b(anew|told|tells|wish(es|ed)?|news|lets? go of|stands? still|comes? along|summ(ed|ing) up"
    r"|kept otherwise|is to be had)\b",
    re.IGNORECASE,
)


def private_words(text: str) -> list[str]:
    return [found[0] for found in PRIVATE.finditer(text)]


def test_no_private_word() -> None:
    words = {file: private_words(file.read_text(encoding="utf-8")) for file in FILES}
    assert {
        file.relative_to(ROOT).as_posix(): found for file, found in words.items() if found
    } == {}


def test_private_words_are_recognised() -> None:
    assert private_words("It is computed anew, as it was told; news of it.") == [
        "anew",
        "told",
        "news",
    ]
