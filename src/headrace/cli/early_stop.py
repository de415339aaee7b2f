"""SIGTERM while `headrace up` starts: the command ends like a daemon that was asked to stop.

Imports nothing that takes time, so that the handler is there before everything else is loaded.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

WITH_VALUE = frozenset({"--home", "--dsn", "--setup-dsn", "--spark", "--store"})


class EarlyStop:
    """The handler of SIGTERM until a daemon has its own; `requested` once the signal came."""

    def __init__(self) -> None:
        self.requested = False

    def install(self) -> None:
        """Have SIGTERM end the process with exit code 0, once what is open is closed."""
        signal.signal(signal.SIGTERM, self._end)

    def check(self) -> None:
        """End the process if SIGTERM came where an exception is lost, such as in a finalizer."""
        if self.requested:
            raise SystemExit(0)

    def _end(self, *_: Any) -> None:
        self.requested = True
        raise SystemExit(0)


EARLY_STOP = EarlyStop()


def command_of(arguments: Sequence[str]) -> str | None:
    """Return the command of a command line: its first word that is no option or value of one."""
    words = iter(arguments)
    for word in words:
        if word in WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None
