"""Every trap has a test, and every test that tests/README.md names is there."""

from __future__ import annotations

import re

import pytest

from tests.docs.named_tests import NAMED, TESTS, assert_named
from tests.fuzz.scenarios import SCENARIOS

ROW = re.compile(r"^\| (?P<number>\d+) \| (?P<trap>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
TRAPS = tuple(ROW.finditer((TESTS / "README.md").read_text(encoding="utf-8")))


def test_no_number_is_missing() -> None:
    assert [int(trap["number"]) for trap in TRAPS] == list(range(1, 63))


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap["number"])
def test_the_tests_of_a_trap_exist(trap: re.Match[str]) -> None:
    assert_named(trap["tests"])


def test_every_scenario_stands_for_a_trap() -> None:
    used = {one["scenario"] for trap in TRAPS for one in NAMED.finditer(trap["tests"])}
    assert used - {None} == set(SCENARIOS)
