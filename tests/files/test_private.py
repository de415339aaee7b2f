"""Folders and files are closed to other users whatever the umask is, and whatever it was before."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace.files.private
from headrace.cli.main import main
from headrace.files.private import (
    close_home,
    current_umask,
    home_folder,
    private_file,
    private_folder,
    private_umask,
    users_umask,
)
from headrace.store.location import StoreLocation

HOME = 0o711 if os.geteuid() == 0 else 0o700


@pytest.fixture(autouse=True, params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_folders_and_files_are_closed(tmp_path: Path) -> None:
    home = tmp_path / "above" / "home"
    home_folder(home)
    private_folder(home / "log")
    os.close(private_file(home / "log" / "x.log", os.O_CREAT | os.O_WRONLY))
    assert (mode(home.parent), mode(home)) == (HOME, HOME)
    assert (mode(home / "log"), mode(home / "log" / "x.log")) == (0o700, 0o600)


def test_folders_that_are_open_are_closed_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As an earlier version has made them. A store elsewhere is as its user made it."""
    home = tmp_path / "home"
    for folder in (home, home / "log", home / "store"):
        folder.mkdir()
        folder.chmod(0o2775)
    with caplog.at_level(logging.WARNING):
        close_home(home, with_store=False)
    assert (mode(home), mode(home / "log")) == (0o2000 | HOME, 0o2700)
    assert mode(home / "store") == 0o2775
    assert [record.args for record in caplog.records] == [(home,), (home / "log",)]
    close_home(home, with_store=True)
    assert mode(home / "store") == 0o2700
    caplog.clear()
    close_home(home, with_store=True)
    assert caplog.records == []


def test_a_folder_of_somebody_else_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    close_home(tmp_path, with_store=True)
    assert "is open to other users" in caplog.text


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    close_home(tmp_path / "home", with_store=True)
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_made_closed_and_left_as_it_is(tmp_path: Path) -> None:
    place = StoreLocation.of(tmp_path / "lake")
    place.prepare()
    assert mode(tmp_path / "lake") == 0o700
    (tmp_path / "lake").chmod(0o750)
    place.prepare()
    assert mode(tmp_path / "lake") == 0o750


def test_commands_make_private_files_and_give_users_theirs(umask: int) -> None:
    with private_umask():
        assert current_umask() == umask | 0o077
        with users_umask():
            assert current_umask() == umask
        assert current_umask() == umask | 0o077
    assert current_umask() == umask
    with users_umask():
        assert current_umask() == umask


def test_a_command_leaves_the_umask_as_it_was(
    umask: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def installed_version() -> str:
        seen.append(current_umask())
        return "1"

    monkeypatch.setattr("headrace.cli.main._installed_version", installed_version)
    assert main(["--version"]) == 0
    assert (seen, current_umask()) == ([umask | 0o077], umask)
    assert headrace.files.private._users_umask is None


def test_a_child_of_a_command_has_the_users_umask(umask: int) -> None:
    with private_umask(), users_umask():
        done = subprocess.run(
            [sys.executable, "-c", "import os; print(os.umask(0))"],
            text=True,
            capture_output=True,
            check=True,
        )
    assert int(done.stdout) == umask


def test_a_folder_that_is_everybodys_stays_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o1777)
    close_home(tmp_path, with_store=True)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
    assert "is shared with other users" in caplog.text
