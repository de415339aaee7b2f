"""The matrix of dead JVMs: whenever Spark dies under a daemon, the next tick works.

A process of its own has its Spark killed, row by row, beside the one of the test run; see
`dead_jvms.py` for the rows. What each served afterwards was compared with PostgreSQL there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.embedded import EmbeddedServer
from tests.databases import extra_database

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ROOT = Path(__file__).parents[2]
# JVMs that live for seconds only: compiling more would cost more than it saves.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

Outcome = dict[str, Any]

# How the calls to Spark end that were under way, or began next.
ENDS = {
    "idle": ["done"],
    "one_refresh": ["spark-lost", "done"],
    "four_refreshes": ["spark-lost"] * 4 + ["done"] * 4,
    "compacting": ["spark-lost", "done"],
    "stopped": ["spark-lost", "done"],
}


@pytest.fixture(scope="module")
def outcomes(
    server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Outcome]]:
    home = tmp_path_factory.mktemp("dead-jvms")
    with extra_database(server) as dsn:
        done = subprocess.run(
            [sys.executable, "-m", "tests.e2e.dead_jvms", dsn, str(home)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "SPARK_SUBMIT_OPTS": JVM_OPTIONS},
            timeout=500,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        yield {line["row"]: line for line in lines}


def assert_recovered(outcome: Outcome) -> None:
    assert outcome["replaced"], "another JVM answers"
    assert outcome["accumulator_servers"] == 1, "nothing is left of the dead one"
    assert outcome["statuses"] == ["ACTIVE"]


@pytest.mark.parametrize("row", ENDS)
def test_the_jvm_is_killed(row: str, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[row]
    assert outcome["ends"] == ENDS[row]
    assert_recovered(outcome)


@pytest.mark.parametrize(("row", "failures"), [("idle", 0), ("one_refresh", 1), ("stopped", 1)])
def test_nothing_fails_but_what_was_under_way(
    row: str, failures: int, outcomes: dict[str, Outcome]
) -> None:
    assert len(outcomes[row]["failures"]) == failures, outcomes[row]


def test_the_jvm_is_killed_while_a_source_is_copied(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["copying"]
    first, *rest = outcome["ends"]
    assert first == "spark-lost"
    assert set(rest) == {"done"}
    assert_recovered(outcome)


def test_the_jvm_is_killed_while_it_starts(outcomes: dict[str, Outcome]) -> None:
    """Each start gets further than the one before, so that one was forgotten."""
    outcome = outcomes["starting"]
    assert outcome["ends"] == ["process", "gateway", "context"]
    # Four refreshes wait for each start, and share its failure.
    assert 3 <= len(outcome["failures"]) <= 12
    assert_recovered(outcome)
