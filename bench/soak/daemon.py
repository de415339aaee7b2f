"""`headrace up` as a service manager runs it: started again whenever it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.soak.processes import java_below

# Seconds that a service manager waits before it starts a daemon again.
RESTART_AFTER = 1.0
# Seconds that a daemon may take to stop.
STOPPING = 60.0


@dataclass(frozen=True)
class Exit:
    """An end of the daemon: its exit code, and what the soak did to end it, if anything."""

    at: float
    code: int
    cause: str | None


class Daemon:
    """The daemon of a soak; `clock` gives the seconds of the soak."""

    def __init__(self, places: list[str], folder: Path, clock: Callable[[], float]) -> None:
        self.exits: list[Exit] = []
        self.starts = 0
        self.jvms: set[int] = set()
        self.log = folder / "up.log"
        self._clock = clock
        self._command = [sys.executable, "-m", "headrace", "up", "--wait", "60", *places]
        temporary = folder / "tmp"
        temporary.mkdir()
        self._environment = {**os.environ, "TMPDIR": str(temporary)}
        self._cause: str | None = None
        self._ending = threading.Event()
        self._started_at = 0
        self.process = self._start()
        self._thread = threading.Thread(target=self._tend, name="service manager")
        self._thread.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def serving(self) -> bool:
        """Whether the daemon that runs has said that it serves."""
        if self.process.poll() is not None:
            return False
        with self.log.open("rb") as log:
            log.seek(self._started_at)
            return b"serving" in log.read(4096)

    def java(self) -> list[int]:
        found = java_below(self.pid)
        self.jvms.update(found)
        return found

    def kill(self) -> None:
        self._cause = "killed"
        self.process.kill()

    def restart(self) -> None:
        """Stop the daemon as a service manager does, and wait for its end."""
        ended = len(self.exits)
        self._cause = "stopped"
        self.process.terminate()
        deadline = time.monotonic() + STOPPING
        while len(self.exits) == ended and time.monotonic() < deadline:
            time.sleep(0.05)
        if len(self.exits) == ended:
            self._cause = "did not stop"
            self.process.kill()

    def pause(self, seconds: float) -> None:
        """Stop the process itself for a while, as a machine without memory or a debugger does."""
        process = self.process
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop the daemon for good."""
        self._ending.set()
        if self.process.poll() is None:
            self.restart()
        self._thread.join()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self.log.open("ab") as log:
            self._started_at = log.tell()
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )

    def _tend(self) -> None:
        while True:
            code = self.process.wait()
            self.exits.append(Exit(self._clock(), code, self._cause))
            self._cause = None
            if self._ending.wait(RESTART_AFTER):
                return
            self.process = self._start()
