"""Links lead somewhere, and code that a page names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, NAMED, ROOT, anchors, links, pages, prose, read, relative

SOURCES = ROOT / "src" / "headrace"


@pytest.mark.parametrize("page", pages(), ids=relative)
def test_links_inside_the_project_resolve(page: Path) -> None:
    for label, target in links(page):
        assert "://" not in target, f"{label}: documents do not depend on other places"
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{label}: there is no {target}"
        if anchor:
            assert anchor in anchors(linked), f"{label}: there is no {target}"


@pytest.mark.parametrize("page", pages(), ids=relative)
def test_functions_and_classes_that_a_page_names_exist(page: Path) -> None:
    for label, target in links(page):
        found = NAMED.fullmatch(label)
        if found is None:
            continue
        assert (page.parent / target).resolve() == SOURCES / found["file"], label
        assert found["name"] in defined(SOURCES / found["file"]), f"{label} does not exist"


@pytest.mark.parametrize("page", pages(), ids=relative)
def test_files_that_a_page_names_exist(page: Path) -> None:
    files = re.findall(r"`([a-z_0-9]+/[a-z_0-9/]+\.py)\b", prose(page))
    folders = (SOURCES, ROOT, ROOT / "tests")
    assert not [file for file in files if not any((folder / file).exists() for folder in folders)]


def defined(path: Path) -> set[str]:
    """The functions, classes and constants at the top of a file."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@pytest.mark.parametrize("page", pages(), ids=relative)
def test_no_path_of_one_machine(page: Path) -> None:
    found = re.findall(r"(?<![\w.])/(?:home|root|work|tmp|Users|var)/\S*", read(page))
    assert not found


def test_every_page_is_in_the_index() -> None:
    index = {(DOCS / target.partition("#")[0]).resolve() for _, target in links(DOCS / "README.md")}
    missing = [page for page in sorted(DOCS.rglob("*.md")) if page.resolve() not in index]
    assert missing == [DOCS / "README.md"]


def test_decisions_are_numbered_without_gaps_and_have_their_parts() -> None:
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [int(page.name[:4]) for page in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    for page in decisions:
        text = prose(page)
        assert text.startswith(f"# {page.name[:4]}: ")
        parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences"]
        assert len(text.splitlines()) <= 80, "one page"
