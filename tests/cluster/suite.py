"""End-to-end tests, run again in a process whose Spark is elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITE = (
    "tests/e2e/test_large_changes.py",
    "tests/e2e/test_no_change.py",
    "tests/e2e/test_over_stream_tables.py",
    "tests/e2e/test_random_views.py::test_random_views[1]",
    "tests/e2e/test_small_copies.py",
)


def run_suite(address: str) -> None:
    """Run the tests with Spark at that address; all have to pass."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITE],
        cwd=ROOT,
        env={**os.environ, "HEADRACE_TEST_SPARK": address},
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
