"""The pages of docs/, and what can be read out of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[(?P<label>[^\]]+)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(?P<level>#+) (?P<title>.+)$", re.MULTILINE)
NAMED = re.compile(r"`(?P<file>[a-z_/]+\.py): (?P<name>\w+)`")


def pages() -> list[Path]:
    """Every Markdown page of the project that is ours to keep right."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def relative(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """The page without its code blocks."""
    return FENCE.sub("", read(page))


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Label and target of every link."""
    for found in LINK.finditer(prose(page)):
        yield found["label"], found["target"]


def titles(page: Path, level: int) -> list[str]:
    return [f["title"] for f in HEADING.finditer(prose(page)) if len(f["level"]) == level]


def anchors(page: Path) -> set[str]:
    """The names that links can give to the page's headings."""
    plain = (re.sub(r"[^\w\- ]", "", f["title"].lower()) for f in HEADING.finditer(prose(page)))
    return {title.replace(" ", "-") for title in plain}
