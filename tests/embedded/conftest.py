"""Home folders of their own, for the tests that start and kill servers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.embedded.cluster import ClusterPaths
from tests.embedded.processes import Holder, eventually, is_running, server_pid


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[ClusterPaths]:
    """An empty home folder, whose server is made sure to be gone afterwards."""
    found = ClusterPaths(tmp_path / "home")
    yield found
    if found.server_lock.exists() and is_running(found):
        with suppress(ProcessLookupError):
            os.kill(server_pid(found), signal.SIGQUIT)
        eventually(lambda: not is_running(found))


@pytest.fixture
def hold(paths: ClusterPaths) -> Iterator[Callable[[], Holder]]:
    """Start other processes that have the server open; those still there are killed afterwards."""
    holders: list[Holder] = []

    def start() -> Holder:
        holders.append(Holder(paths.home))
        return holders[-1]

    yield start
    for holder in holders:
        holder.send(signal.SIGKILL)
