"""Every trap has a test, and every test that tests/README.md names is there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.pages import ROOT
from tests.fuzz.test_traps import SCENARIOS

TESTS = ROOT / "tests"
ROW = re.compile(r"^\| (?P<number>\d+) \| (?P<trap>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<test>\w+)(?:\[(?P<scenario>[^\]]+)\])?`")
TRAPS = tuple(ROW.finditer((TESTS / "README.md").read_text(encoding="utf-8")))


def test_no_number_is_missing() -> None:
    assert [int(trap["number"]) for trap in TRAPS] == list(range(1, 63))


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap["number"])
def test_the_tests_of_a_trap_exist(trap: re.Match[str]) -> None:
    named = list(NAMED.finditer(trap["tests"]))
    assert named
    # Nothing but names of tests, so that none is misspelt out of sight.
    assert not NAMED.sub("", trap["tests"]).strip(" ,")
    for one in named:
        tree = ast.parse((TESTS / one["file"]).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert one["test"] in functions, one[0]
        if one["scenario"] is not None:
            assert one["scenario"] in SCENARIOS, one[0]


def test_every_scenario_stands_for_a_trap() -> None:
    used = {one["scenario"] for trap in TRAPS for one in NAMED.finditer(trap["tests"])}
    assert used - {None} == set(SCENARIOS)
