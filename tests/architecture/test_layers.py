"""Packages import downwards only, and each outside library is behind the packages named for it."""

from __future__ import annotations

import ast
from pathlib import Path

from docs.generators.layers import (
    LAYERS,
    LIBRARIES,
    ROOT,
    WAYS_IN,
    height,
    imports,
    package_graph,
    picture,
)


def broken_rules(root: Path) -> list[str]:
    """Return the imports that do not point downwards, types included."""
    broken = []
    for found in imports(root):
        target = found.target
        if found.package in WAYS_IN or target in {None, found.package}:
            continue
        own, other = height(found.package), height(target or "")
        if own is None or other is None or other >= own:
            broken.append(f"{found.place} imports {found.module}")
    return broken


def test_packages_import_downwards_only() -> None:
    assert broken_rules(ROOT) == []


def test_every_package_is_in_one_layer() -> None:
    named = [package for layer in LAYERS for package in layer.packages]
    assert len(named) == len(set(named))
    assert set(named) == set(package_graph())


def test_libraries_are_used_where_they_may() -> None:
    found = [
        f"{one.place} imports {one.module}"
        for one in imports(ROOT)
        if one.library in LIBRARIES
        and one.package not in LIBRARIES[one.library]
        and not one.only_types
    ]
    assert found == []


def test_an_import_upwards_is_found(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "log.py").write_text(
        "from typing import TYPE_CHECKING\n\n"
        "from headrace import errors\n\n"
        "if TYPE_CHECKING:\n    from headrace.refresh.plan import Plan\n\n"
        "def late() -> None:\n    import headrace.source.table\n"
    )
    assert broken_rules(tmp_path) == [
        "store/log.py:6 imports headrace.refresh.plan",
        "store/log.py:9 imports headrace.source.table",
    ]


def test_the_picture_leaves_out_what_other_arrows_imply() -> None:
    graph = {
        "refresh": frozenset({"catalog", "errors"}),
        "catalog": frozenset({"errors"}),
        "errors": frozenset[str](),
    }
    assert picture(graph).splitlines() == [
        "```mermaid",
        "graph TD",
        "  refresh --> catalog",
        "  catalog --> errors",
        "```",
    ]


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
