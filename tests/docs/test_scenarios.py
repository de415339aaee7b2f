"""Every scenario in tests/README.md has a test that is there.

S are of strata, G of groups, H of hybrid capture, P of performance and scale, X are faults around a
project, F are the faults of capture, which are numbered with others; the latter are shown with
triggers and with the log, unless the table says that only one of them knows a fault.
"""

from __future__ import annotations

import importlib
import re

import pytest

from tests.docs.named_tests import NAMED, assert_named
from tests.docs.scenarios import SCENARIOS

NUMBERS = {
    "S": range(1, 45),
    "G": range(1, 41),
    "H": range(1, 29),
    "P": range(1, 33),
    "X": range(1, 23),
    "F": (*range(1, 5), 9, 10, *range(18, 32), *range(37, 54), 55, 57, 58, 59, 63),
}


@pytest.mark.parametrize("letter", NUMBERS)
def test_no_number_is_missing(letter: str) -> None:
    numbers = [int(one["number"]) for one in SCENARIOS if one["letter"] == letter]
    assert numbers == list(NUMBERS[letter])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one["letter"] + one["number"])
def test_the_tests_of_a_scenario_exist(scenario: re.Match[str]) -> None:
    assert_named(scenario["tests"])


TRIGGERS, LOG = "triggers", "log"
BOTH = frozenset({TRIGGERS, LOG})
FAULTS = [one for one in SCENARIOS if one["letter"] == "F"]


def modes_of(file: str, name: str) -> frozenset[str]:
    """The modes of capture that a test runs in.

    Those of `ingest/` have the mode as a parameter, or go from one to the other; others know one.
    """
    if not file.startswith("ingest/"):
        return frozenset({LOG if file.startswith("capture/wal/") else TRIGGERS})
    module = importlib.import_module(f"tests.{file.removesuffix('.py').replace('/', '.')}")
    marks = [getattr(one, "pytestmark", []) for one in (getattr(module, name), module)]
    for mark in (one for found in marks for one in (found if isinstance(found, list) else [found])):
        if mark.name != "parametrize":
            continue
        names, values = mark.args
        names = [one.strip() for one in names.split(",")] if isinstance(names, str) else names
        if "mode" in names:
            place = names.index("mode")
            chosen = {one if len(names) == 1 else one[place] for one in values}
            return frozenset(TRIGGERS if one == "trigger" else LOG for one in chosen)
    return BOTH


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one["letter"] + one["number"])
def test_a_fault_is_shown_in_every_mode_that_knows_it(fault: re.Match[str]) -> None:
    only = {mode for mode in BOTH if f"({mode} only)" in fault["shown"]}
    named = NAMED.finditer(fault["tests"])
    modes = frozenset[str]().union(*(modes_of(one["file"], one["test"]) for one in named))
    assert modes >= (only or BOTH)
