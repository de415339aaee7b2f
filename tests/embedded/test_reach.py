"""The server runs as an ordinary user that reaches its files; nobody else reaches the server."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from headrace.embedded import EmbeddedServer, binaries, identity
from headrace.embedded.binaries import find_binaries
from headrace.embedded.cluster import ClusterPaths
from headrace.errors import Unavailable
from tests.embedded.processes import answer, run, server_pid

pytestmark = pytest.mark.postgres

ROOT = os.geteuid() == 0


def user_of(pid: int) -> int:
    done = subprocess.run(
        ["ps", "-o", "uid=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_the_server_never_runs_as_root(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home):
        user = user_of(server_pid(paths))
    assert user != 0
    assert ROOT or user == os.geteuid()
    assert user == paths.data.stat().st_uid


def test_a_home_in_a_closed_folder(paths: ClusterPaths, tmp_path: Path) -> None:
    """Root can open a home that the server's user could not enter; modes stay as they were."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with EmbeddedServer.open(closed / "home") as server:
        assert answer(server.dsn, "SELECT count(*) FROM pg_class") > 0
    with EmbeddedServer.open(closed / "home") as server:
        assert answer(server.dsn, "SELECT 1") == 1
    found = closed.stat()
    assert stat.S_IMODE(found.st_mode) == 0o700
    assert found.st_uid == os.geteuid()


def test_programs_in_a_closed_folder(
    paths: ClusterPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root can use an environment that the server's user could not enter."""
    closed = copy_programs(tmp_path / "closed")
    closed.chmod(0o700)
    for folder, _, files in os.walk(closed):
        for name in (folder, *(os.path.join(folder, file) for file in files)):
            os.chmod(name, stat.S_IMODE(os.lstat(name).st_mode) & 0o700)
    use_programs(closed, monkeypatch)
    with EmbeddedServer.open(paths.home) as server:
        assert answer(server.dsn, "SELECT 1") == 1


def test_root_without_the_means_to_pass_closed_folders(
    paths: ClusterPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity.shutil, "which", lambda name: None)
    closed = copy_programs(tmp_path / "closed")
    closed.chmod(0o700)
    use_programs(closed, monkeypatch)
    if not ROOT:
        with EmbeddedServer.open(paths.home) as server:
            assert answer(server.dsn, "SELECT 1") == 1
        return
    with pytest.raises(Unavailable) as caught:
        EmbeddedServer.open(paths.home)
    assert caught.value.code == "embedded-server-failed"
    assert "setpriv" in str(caught.value.hint)


def test_open_folders_need_no_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity.shutil, "which", lambda name: None)
    with tempfile.TemporaryDirectory(prefix="headrace-open-") as folder:
        opened = Path(folder)
        opened.chmod(0o755)
        copied = copy_programs(opened / "programs")
        use_programs(copied, monkeypatch)
        with EmbeddedServer.open(opened / "home") as server:
            assert answer(server.dsn, "SELECT 1") == 1


def copy_programs(target: Path) -> Path:
    """A copy of the wheel's version 18 with the libraries it finds relative to itself."""
    source = find_binaries(18).root.parent
    target.mkdir(mode=0o755)
    shutil.copytree(source / "pginstall18", target / binaries.MODULE / "pginstall18")
    libraries = source.with_name(f"{binaries.MODULE}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)
    (target / binaries.MODULE / "__init__.py").touch()
    return target


def use_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    assert find_binaries(18).root == folder / binaries.MODULE / "pginstall18"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_only_the_owner_gets_in(paths: ClusterPaths) -> None:
    with EmbeddedServer.open(paths.home) as server:
        # Under any role, for the owner of the home folder.
        run(server.dsn, "CREATE ROLE reader LOGIN")
        assert answer(server.dsn_of("headrace", "reader"), "SELECT current_user") == "reader"
        mode = (paths.root / "socket").stat().st_mode
        assert mode & 0o077 == 0
        if ROOT:
            # Not even for the user that the server runs as.
            refused = os.fork()
            if refused == 0:
                os.setgid(paths.data.stat().st_gid)
                os.setuid(paths.data.stat().st_uid)
                try:
                    psycopg.connect(server.dsn)
                except psycopg.OperationalError:
                    os._exit(7)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(refused, 0)[1]) == 7


def test_the_wheel_is_not_imported(paths: ClusterPaths) -> None:
    import sys

    find_binaries()
    assert binaries.MODULE not in sys.modules


def test_without_a_user_named_postgres(
    paths: ClusterPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "CANDIDATES", ("no-such-user", "nobody"))
    with EmbeddedServer.open(paths.home) as server:
        assert answer(server.dsn, "SELECT 1") == 1
        expected = pwd.getpwnam("nobody").pw_uid if ROOT else os.geteuid()
        assert user_of(server_pid(paths)) == expected
    # The data keep their owner when the machine gets a better user later.
    monkeypatch.undo()
    with EmbeddedServer.open(paths.home):
        assert user_of(server_pid(paths)) == expected


def test_without_any_ordinary_user(paths: ClusterPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "CANDIDATES", ("no-such-user",))
    if not ROOT:
        EmbeddedServer.open(paths.home).close()
        return
    with pytest.raises(Unavailable) as caught:
        EmbeddedServer.open(paths.home)
    assert caught.value.code == "embedded-server-failed"
    assert "ordinary user" in str(caught.value.hint)
