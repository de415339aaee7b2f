"""How much of the test suite a run performs: its form, named by HEADRACE_TESTS.

| form | what runs |
|---|---|
| `fast` | the pure tests: no PostgreSQL server, no JVM |
| `default` | all pure tests, of the others the shares named by `SHARES`; short random runs |
| `full` | everything; also where HEADRACE_TESTS is not set |
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

NEEDS_SPARK = frozenset({"spark", "e2e"})
NEEDS_POSTGRES = frozenset({"postgres", "e2e"})
IMPURE = NEEDS_SPARK | NEEDS_POSTGRES


class Form(StrEnum):
    FAST = "fast"
    DEFAULT = "default"
    FULL = "full"


FORM = Form(os.environ.get("HEADRACE_TESTS") or Form.FULL)

# Of the tests that are not pure: one in how many the default form runs, of every file; 0 is none of
# them. The longest beginning of a test's name counts; what is not named runs. Of a file the first
# one runs, and then every n-th: odd numbers, so that matrices of pairs are met in both ways.
SHARES: dict[str, int] = {
    "tests/bench/test_job_small.py::test_query_is_kept": 5,
    "tests/bench/test_job_small.py::test_results_change": 0,
    "tests/bench/test_tpcds_small.py::test_query_is_kept": 5,
    "tests/bench/test_tpcds_small.py::test_results_change": 0,
    "tests/bench/test_soak_small.py": 0,
    "tests/capture/": 3,
    "tests/cli/test_end_to_end.py": 5,
    "tests/cluster/": 0,
    "tests/commands/": 3,
    "tests/crash/": 9,
    "tests/daemon/": 3,
    "tests/e2e/": 9,
    "tests/e2e/test_concurrent_readers.py": 0,
    "tests/e2e/test_daemon_kills.py": 0,
    "tests/e2e/test_dead_jvm.py": 0,
    "tests/e2e/test_interrupts.py": 0,
    "tests/e2e/test_large_changes.py": 0,
    "tests/e2e/test_lifecycle_crashes.py": 0,
    "tests/e2e/test_many_epochs.py": 0,
    "tests/e2e/test_random_groups.py": 0,
    "tests/e2e/test_recursion.py": 0,
    "tests/e2e/test_retention.py": 0,
    "tests/e2e/test_side_by_side.py": 0,
    "tests/e2e/test_tiers.py": 0,
    "tests/e2e/test_two_at_once.py": 0,
    "tests/e2e/test_worker_quotas.py": 0,
    "tests/e2e/test_writers.py": 0,
    "tests/embedded/": 3,
    "tests/functions/": 3,
    "tests/ingest/": 3,
    "tests/lifecycle/": 3,
    "tests/publish/": 3,
    "tests/query/test_typed_expressions.py": 3,
    "tests/schedule/": 3,
    "tests/security/": 3,
    "tests/security/test_machine.py": 5,
    "tests/spark/test_connect.py": 0,
    "tests/spark/test_session.py": 3,
}

# Files that take longest, the longest first: a worker that begins with one of them late would work
# alone at the end. A file that is not named comes after them, in alphabetical order.
LONGEST = (
    "tests/cluster/test_connect.py",
    "tests/cluster/test_standalone.py",
    "tests/crash/test_crash_points.py",
    "tests/ingest/test_transition_crashes.py",
    "tests/bench/test_soak_small.py",
    "tests/e2e/test_dead_jvm.py",
    "tests/e2e/test_lost_files.py",
    "tests/bench/test_tpcds_small.py",
    "tests/bench/test_job_small.py",
    "tests/e2e/test_access_paths.py",
)


def rounds(default: int, full: int, variable: str | None = None) -> int:
    """Return how often a loop runs: as often as the environment variable says, else the form."""
    chosen = os.environ.get(variable) if variable is not None else None
    if chosen is not None:
        return int(chosen)
    return full if FORM is Form.FULL else default


def examples(full: int) -> int:
    """Return how many random examples a test tries, of which there are so many in the full form."""
    return rounds(min(full, max(20, full // 5)), full)


def names(item: pytest.Item) -> frozenset[str]:
    """Return the names of the markers of a test."""
    return frozenset(mark.name for mark in item.iter_markers())


def is_pure(item: pytest.Item) -> bool:
    return not IMPURE & names(item)


def may_be_pure(file: Path) -> bool:
    """Say whether a file may have pure tests, from its text: all of one are marked at its head."""
    if not file.name.startswith("test_") or file.suffix != ".py":
        return True
    _, _, rest = f"\n{file.read_text(encoding='utf-8')}".partition("\npytestmark = ")
    marks, _, _ = rest.partition("\n\n")
    return not any(f"pytest.mark.{name}" in marks for name in IMPURE)


def share_of(test: str) -> tuple[str, int]:
    """Return the entry of `SHARES` that a test falls under, and its number: 1 is all of them."""
    found = max((start for start in SHARES if test.startswith(start)), key=len, default="")
    return found, SHARES.get(found, 1)


def some(cases: Sequence[T], every: int) -> Sequence[T]:
    """Return all cases in the full form, else the first and then every n-th."""
    return cases if FORM is Form.FULL else cases[::every]


def split(items: Iterable[pytest.Item], form: Form) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that a form runs, and the others."""
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    numbers: Counter[tuple[str, str]] = Counter()
    for item in items:
        if is_pure(item) or form is Form.FULL:
            runs = True
        elif form is Form.FAST:
            runs = False
        else:
            start, every = share_of(item.nodeid)
            place = (start, item.nodeid.partition("::")[0])
            runs = every > 0 and numbers[place] % every == 0
            numbers[place] += 1
        (chosen if runs else others).append(item)
    return chosen, others


def mismarked(items: Iterable[pytest.Item]) -> list[str]:
    """Return the tests that use a server or Spark and have no marker that says so."""
    return [
        item.nodeid
        for item in items
        if (_uses(item, "spark") and not NEEDS_SPARK & names(item))
        or (_uses(item, "server") and is_pure(item))
    ]


def _uses(item: pytest.Item, fixture: str) -> bool:
    """Say whether a test uses a fixture of all tests, not one of its own by the same name."""
    info = getattr(item, "_fixtureinfo", None)
    found = info.name2fixturedefs.get(fixture, ()) if info is not None else ()
    return bool(found) and found[-1].baseid == "tests"


def longest_first(items: list[pytest.Item]) -> None:
    """Bring the tests of the longest files to the front; the others keep their order."""
    ranks = {file: rank for rank, file in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(ranks)))
