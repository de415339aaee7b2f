"""The log of a project, <home>/log/headrace.log: warnings of the library and tracebacks of bugs."""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, datetime
from pathlib import Path

NAME = "headrace.log"


def log_file(home: Path) -> Path:
    return home / "log" / NAME


def keep_log(home: Path) -> None:
    """Send the library's log to the file, which is made when there is something to write."""
    logger = logging.getLogger("headrace")
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.addHandler(_LaterFile(log_file(home)))
    logger.propagate = False


def log_failure(home: Path, command: str, error: BaseException) -> Path:
    """Append the traceback; gives the file. Raises OSError if it cannot be written."""
    file = log_file(home)
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(traceback.format_exception(error))
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"{datetime.now(UTC).isoformat()} ERROR headrace {command}\n{lines}")
    return file


class _LaterFile(logging.FileHandler):
    """A file handler that makes its folder, too, only when the first record comes."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, delay=True, encoding="utf-8")
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        super().emit(record)
