"""The same end-to-end tests on a cluster of two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import servers
from tests.cluster.suite import run_suite

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.mark.timeout(1500)
def test_the_end_to_end_tests_pass_on_a_cluster(tmp_path: Path) -> None:
    with servers.standalone(tmp_path) as address:
        run_suite(address)
    # A worker has a folder for each application that it ran something of.
    for worker in ("worker0", "worker1"):
        assert list(tmp_path.glob(f"{worker}/app-*")), f"{worker} ran nothing"
