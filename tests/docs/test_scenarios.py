"""Every scenario in tests/README.md has a test that is there.

S are of strata, G of groups, F are the faults of capture, which are numbered with others.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.named_tests import TESTS, assert_named

ROW = re.compile(
    r"^\| (?P<letter>[SGF])(?P<number>\d+) \| (?P<shown>[^|]+) \| (?P<tests>[^|]+) \|$",
    re.MULTILINE,
)
SCENARIOS = tuple(ROW.finditer((TESTS / "README.md").read_text(encoding="utf-8")))


NUMBERS = {
    "S": range(1, 45),
    "G": range(1, 41),
    "F": (*range(1, 5), 9, 10, *range(18, 32), *range(37, 54), 55, 57, 58, 59, 63),
}


@pytest.mark.parametrize("letter", NUMBERS)
def test_no_number_is_missing(letter: str) -> None:
    numbers = [int(one["number"]) for one in SCENARIOS if one["letter"] == letter]
    assert numbers == list(NUMBERS[letter])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one["letter"] + one["number"])
def test_the_tests_of_a_scenario_exist(scenario: re.Match[str]) -> None:
    assert_named(scenario["tests"])
