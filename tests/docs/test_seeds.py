"""Every point of docs/seeds.md says where it is built, and has a test, a benchmark or a reason.

`test_links.py` follows the links of the page.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.named_tests import NAMED, assert_named
from tests.docs.pages import DOCS, LINK, ROOT, read
from tests.docs.scenarios import SCENARIOS

PAGE = read(DOCS / "seeds.md")
CELLS = r" \| (?P<section>[^|]+) \| (?P<asked>[^|]+) \| (?P<built>[^|]+) \| (?P<shown>[^|]+) \|$"
POINTS = tuple(re.finditer(rf"^\| (?P<seed>\d{{3}})-(?P<number>\d+){CELLS}", PAGE, re.MULTILINE))
DIFFERENT = tuple(
    re.finditer(
        r"^\| D(?P<number>\d+) \| (?P<there>[^|]+) \| (?P<why>[^|]+) \|$", PAGE, re.MULTILINE
    )
)
BENCHMARK = re.compile(r"`make (?P<target>[\w-]+)`")
TOKENS = re.compile(r"(?P<letter>[A-Z])(?P<first>\d+)(?:–(?P=letter)(?P<last>\d+))?")
KNOWN = {one["letter"] + one["number"] for one in SCENARIOS}
KNOWN |= {f"D{one['number']}" for one in DIFFERENT}
TARGETS = set(re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE))


def named(shown: str) -> list[str]:
    """Scenarios and differences that a cell names; ends of a range stand for what is between."""
    found = []
    for one in TOKENS.finditer(shown):
        numbers = range(int(one["first"]), int(one["last"] or one["first"]) + 1)
        found += [f"{one['letter']}{number}" for number in numbers]
    return found


def point_id(point: re.Match[str]) -> str:
    return f"{point['seed']}-{point['number']}"


def test_points_are_numbered_without_gaps() -> None:
    assert len(POINTS) == len(re.findall(r"^\| \d{3}-", PAGE, re.MULTILINE)) > 200
    for seed in ("000", "001", "002", "003", "004"):
        numbers = [int(one["number"]) for one in POINTS if one["seed"] == seed]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers


@pytest.mark.parametrize("point", POINTS, ids=point_id)
def test_a_point_is_built_somewhere_and_shown(point: re.Match[str]) -> None:
    assert LINK.search(point["built"])
    assert not LINK.sub("", point["built"]).strip(" ,")
    shown = point["shown"]
    for one in BENCHMARK.finditer(shown):
        assert one["target"] in TARGETS
    shown = BENCHMARK.sub("", shown)
    tests = [one[0] for one in NAMED.finditer(shown)]
    if tests:
        assert_named(", ".join(tests))
    shown = NAMED.sub("", shown)
    assert set(named(shown)) <= KNOWN
    assert not TOKENS.sub("", shown).strip(" ,")
    assert tests or named(shown) or BENCHMARK.search(point["shown"])


def test_differences_are_numbered_and_each_is_one_of_a_point() -> None:
    numbers = [int(one["number"]) for one in DIFFERENT]
    assert numbers == list(range(1, len(numbers) + 1))
    used = {
        one for point in POINTS for one in named(NAMED.sub("", point["shown"])) if one[0] == "D"
    }
    assert used == {f"D{number}" for number in numbers}
