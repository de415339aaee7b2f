"""The log file of a project, <home>/log/headrace.log: warnings, and tracebacks of bugs."""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

from headrace.files.private import private_file, private_folder

NAME = "headrace.log"


def log_file(home: Path) -> Path:
    return home / "log" / NAME


def keep_log(home: Path) -> None:
    """Send the library's log records to the log file, which the first record creates."""
    logger = logging.getLogger("headrace")
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.addHandler(_LaterFile(log_file(home)))
    logger.propagate = False


def log_failure(home: Path, command: str, error: BaseException) -> Path:
    """Append the traceback to the log file and return its path; raise OSError on failure."""
    file = log_file(home)
    _make_folder(file)
    lines = "".join(traceback.format_exception(error))
    with open(file, "a", encoding="utf-8", opener=private_file) as opened:
        opened.write(f"{datetime.now(UTC).isoformat()} ERROR headrace {command}\n{lines}")
    return file


class _LaterFile(logging.FileHandler):
    """A file handler that makes its folder, too, only when the first record comes."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, delay=True, encoding="utf-8")
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        _make_folder(Path(self.baseFilename))
        super().emit(record)

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=private_file)


def _make_folder(file: Path) -> None:
    if not file.parent.is_dir():
        private_folder(file.parent)
