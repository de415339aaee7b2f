"""Daemons as they are: in a thread of the test, or as `headrace up` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import headrace

PATIENCE = 120.0


def eventually(condition: Callable[[], object], why: Callable[[], object] = lambda: "") -> None:
    """Wait for something that another thread or process brings about."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError(f"it did not come about: {why()}")


class Running:
    """A daemon that runs in a thread for the time of a `with`, and what it said."""

    def __init__(self, project: headrace.Headrace, *, at_once: bool = True) -> None:
        self.project = project
        self.said: list[str] = []
        self.daemon = project.daemon(self.said.append)
        if at_once:
            # Waits after failures are drawn between nothing and their bound.
            self.daemon._random.random = lambda: 0.0  # type: ignore[method-assign]
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.daemon.run(PATIENCE)
        except BaseException as error:  # noqa: BLE001  the test shows it
            self.failure = error

    def heard(self, words: str) -> int:
        """How often it said something with these words."""
        return sum(words in one for one in self.said)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait while it runs."""

        def ended_or() -> object:
            return self.failure is not None or condition()

        eventually(ended_or, lambda: self.said[-20:])
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> Running:
        self._thread.start()
        self.until(lambda: self.heard("serving"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.daemon.stop()
        self._thread.join()
        if error is None and self.failure is not None:
            raise self.failure


class Up:
    """`headrace up` in a process group of its own."""

    def __init__(self, home: Path, dsn: str | None = None, *options: str) -> None:
        places = ["--home", str(home)] if dsn is None else ["--home", str(home), "--dsn", dsn]
        self._log = home / f"up-{os.urandom(4).hex()}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headrace", "up", *places, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def until(self, condition: Callable[[], object]) -> None:
        """Wait while it runs."""
        eventually(
            lambda: condition() or self.process.poll() is not None,
            lambda: self.said[-2000:],
        )
        assert self.process.poll() is None, self.said

    def until_serving(self) -> None:
        self.until(lambda: "serving" in self.said)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it by a signal; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Up:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
