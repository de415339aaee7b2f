"""Three minutes of the soak: every fault that needs no root, by triggers first, then from the WAL.

It is a process of its own, as `make soak` is. The seed decides which faults occur when. A slow
machine has time to recover; the one bound on time is for statements that wait for Headrace's locks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.soak.faults import FAULTS
from bench.soak.plan import SWITCH
from bench.soak.shop import SOURCES

# A machine that is busy takes longer to set up, to let each fault pass, and to catch up.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[2]
NEEDS_ROOT = "full_disk"
OPTIONS = ("MODE=both", "HOURS=0.05", "SEED=1", f"SKIP={NEEDS_ROOT}")
# Seconds within which a soak that is stopped has stopped its daemon and its server.
STOPPING = 120


@contextmanager
def soaking(output: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run a soak, and stop it with all that it has started if it is not awaited."""
    with output.open("w") as report:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.soak", *options],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=report,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOPPING)
            finally:
                process.kill()


def test_three_minutes(tmp_path: Path) -> None:
    output, file = tmp_path / "report.txt", tmp_path / "soak.json"
    with soaking(output, *OPTIONS, f"OUT={file}") as process:
        code = process.wait()
    # The last line repeats the result as JSON.
    report = "\n".join(line for line in output.read_text().splitlines() if line[:1] != "{")
    assert file.exists(), f"the soak ended with exit code {code}:\n{report}"
    result: dict[str, Any] = json.loads(file.read_text())
    broken = [bound for bound in result["bounds"] if not bound["kept"]]
    assert (code, result["ok"], broken) == (0, True, []), report
    assert {event["kind"] for event in result["events"]} == {*FAULTS, SWITCH} - {NEEDS_ROOT}
    read_from_wal = [sample.get("wal_sources") or 0 for sample in result["samples"]]
    # A source of which rights were lost or columns altered is captured by triggers for a while.
    assert max(read_from_wal) == len(SOURCES)
