"""Tests named in a cell of a table of tests/README.md."""

from __future__ import annotations

import ast
import re

from tests.docs.pages import ROOT
from tests.fuzz.scenarios import SCENARIOS

TESTS = ROOT / "tests"
NAMED = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<test>\w+)(?:\[(?P<scenario>[^\]]+)\])?`")


def assert_named(cell: str) -> None:
    """The cell names tests that are there, and nothing else, so that none is misspelt unseen."""
    named = list(NAMED.finditer(cell))
    assert named
    assert not NAMED.sub("", cell).strip(" ,")
    for one in named:
        tree = ast.parse((TESTS / one["file"]).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert one["test"] in functions, one[0]
        if one["scenario"] is not None:
            assert one["scenario"] in SCENARIOS, one[0]
