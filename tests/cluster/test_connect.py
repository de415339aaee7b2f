"""The same end-to-end tests over Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import servers
from tests.cluster.suite import run_suite

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.mark.timeout(1500)
def test_the_end_to_end_tests_pass_over_connect(tmp_path: Path) -> None:
    with servers.connect(tmp_path) as address:
        run_suite(address)
    assert "Starting task" in (tmp_path / "server.log").read_text()
