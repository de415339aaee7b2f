"""The same end-to-end tests on Spark elsewhere: a cluster of two workers, and Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import servers

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

ROOT = Path(__file__).parents[2]
SUITE = (
    "tests/e2e/test_large_changes.py",
    "tests/e2e/test_no_change.py",
    "tests/e2e/test_over_stream_tables.py",
    "tests/e2e/test_random_views.py::test_random_views[1]",
    "tests/e2e/test_small_copies.py",
)
# A worker has a folder for each application that it ran something of.
WORKED = {"standalone": ("worker0/app-*", "worker1/app-*"), "connect": ("server.log",)}


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", ["standalone", "connect"])
def test_the_end_to_end_tests_pass_elsewhere(kind: str, tmp_path: Path) -> None:
    start = {"standalone": servers.standalone, "connect": servers.connect}[kind]
    with start(tmp_path / "spark") as address:
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
    for place in WORKED[kind]:
        assert list((tmp_path / "spark").glob(place)), f"nothing ran in {place}"
    if kind == "connect":
        assert "Starting task" in (tmp_path / "spark" / "server.log").read_text()
