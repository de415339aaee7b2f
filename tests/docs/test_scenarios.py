"""Every scenario of strata, cycles and recursion in tests/README.md has a test that is there."""

from __future__ import annotations

import re

import pytest

from tests.docs.named_tests import TESTS, assert_named

ROW = re.compile(r"^\| S(?P<number>\d+) \| (?P<shown>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
SCENARIOS = tuple(ROW.finditer((TESTS / "README.md").read_text(encoding="utf-8")))


def test_no_number_is_missing() -> None:
    assert [int(scenario["number"]) for scenario in SCENARIOS] == list(range(1, 45))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["number"])
def test_the_tests_of_a_scenario_exist(scenario: re.Match[str]) -> None:
    assert_named(scenario["tests"])
