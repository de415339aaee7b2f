"""Every scenario in tests/README.md has a test that is there: S of strata, G of groups."""

from __future__ import annotations

import re

import pytest

from tests.docs.named_tests import TESTS, assert_named

ROW = re.compile(
    r"^\| (?P<letter>[SG])(?P<number>\d+) \| (?P<shown>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE
)
SCENARIOS = tuple(ROW.finditer((TESTS / "README.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize(("letter", "last"), [("S", 44), ("G", 40)])
def test_no_number_is_missing(letter: str, last: int) -> None:
    numbers = [int(one["number"]) for one in SCENARIOS if one["letter"] == letter]
    assert numbers == list(range(1, last + 1))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one["letter"] + one["number"])
def test_the_tests_of_a_scenario_exist(scenario: re.Match[str]) -> None:
    assert_named(scenario["tests"])
