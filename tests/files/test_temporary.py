"""Temporary folders are gone with whoever used them, however that ended."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headrace.files.temporary import LOG, remove_abandoned, temporary_folder

# Reports that it has the folder, and waits until it is killed.
HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from headrace.files.temporary import temporary_folder
with temporary_folder(sys.argv[2]) as folder:
    (folder / "1.arrow").write_bytes(b"rows")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_use(disk: Path) -> None:
    with temporary_folder(LOG) as folder:
        (folder / "1.arrow").write_bytes(b"rows")
        assert list(disk.iterdir()) == [folder]
    assert list(disk.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_is_used_is_not(disk: Path) -> None:
    (disk / "other").mkdir()
    (disk / f"{LOG}file").touch()
    (disk / f"{LOG}link").symlink_to(disk / "other")
    others = set(disk.iterdir())
    command = [sys.executable, "-c", HOLD, str(disk), LOG]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with temporary_folder(LOG) as ours:
            assert set(disk.iterdir()) == {*others, left, ours}
            assert (left / "1.arrow").read_bytes() == b"rows"
            remove_abandoned(LOG)
            assert ours.exists(), "nobody removes a folder of our own"
        process.kill()
    assert (left / "1.arrow").exists()
    with temporary_folder(LOG) as ours:
        assert set(disk.iterdir()) == {*others, ours}


def test_a_folder_that_is_removed_before_it_is_locked_is_not_used(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process looks for abandoned ones just then."""
    made: list[str] = []
    make = tempfile.mkdtemp

    def made_and_removed(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            remove_abandoned(LOG)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", made_and_removed)
    with temporary_folder(LOG) as folder:
        assert [str(folder)] == made[1:]
        assert folder.is_dir()
