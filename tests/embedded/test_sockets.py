"""The socket's folder is short enough and nobody else's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.embedded.sockets import choose_socket_folder, fits, make_socket_folder
from headrace.errors import Unavailable

SHORT = Path("/srv/home/pg")
LONG = Path("/srv") / ("x" * 100) / "pg"


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder with a short path, which pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="hr-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_a_short_path_keeps_its_socket() -> None:
    assert choose_socket_folder(SHORT, Path("/t")) == SHORT / "socket"


def test_a_long_path_gets_a_short_folder_of_its_own() -> None:
    chosen = choose_socket_folder(LONG, Path("/t"))
    assert fits(chosen)
    assert chosen.parent == Path("/t")
    assert chosen == choose_socket_folder(LONG, Path("/t"))
    assert chosen != choose_socket_folder(LONG.with_name("other"), Path("/t"))


def test_length_is_counted_in_bytes() -> None:
    assert fits(Path("/" + "e" * 80))
    assert not fits(Path("/" + "é" * 80))


def test_no_folder_is_short_enough() -> None:
    with pytest.raises(Unavailable) as caught:
        choose_socket_folder(LONG, LONG)
    assert caught.value.code == "embedded-server-failed"


def test_the_folder_is_closed_to_others(temporary: Path) -> None:
    folder = make_socket_folder(LONG, os.geteuid(), os.getegid())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert make_socket_folder(LONG, os.geteuid(), os.getegid()) == folder


@pytest.mark.parametrize("trap", ["open", "link", "file"])
def test_a_folder_laid_by_somebody_else_is_refused(temporary: Path, trap: str) -> None:
    folder = choose_socket_folder(LONG, temporary)
    if trap == "open":
        folder.mkdir()
        folder.chmod(0o777)
    elif trap == "link":
        elsewhere = temporary / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        folder.symlink_to(elsewhere)
    else:
        folder.touch(mode=0o700)
    with pytest.raises(Unavailable) as caught:
        make_socket_folder(LONG, os.geteuid(), os.getegid())
    assert caught.value.code == "embedded-server-failed"
