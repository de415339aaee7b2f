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

from bench.soak.processes import catches, java_below

# Seconds that a service manager waits before it starts a daemon again.
RESTART_AFTER = 1.0
# Seconds that a daemon may take to stop.
STOPPING = 60.0
# Seconds within which the service manager has a process of the daemon that a fault can hit.
PATIENCE = 60.0
# Seconds for which a daemon waits at its start while an operator's command has the lease.
LEASE_WAIT = 300
# The line that a daemon prints, behind the time, once it has the lease.
SERVING = b"  serving\n"
# Lines of the daemon's log that a result quotes: of its end, and of each daemon that ended.
QUOTED = 40
LAST_WORDS = 5
# Bytes of a line of the log, generously.
LINE = 500


@dataclass(frozen=True)
class Exit:
    """An end of the daemon: its exit code, and what the soak did to end it, if anything.

    `serving` says whether it had come so far as to serve since it was `started`; `said` has its
    last lines.
    """

    at: float
    code: int
    cause: str | None
    started: float = 0.0
    serving: bool = True
    said: str = ""


class Daemon:
    """The daemon of a soak; `clock` gives the seconds of the soak."""

    def __init__(self, places: list[str], folder: Path, clock: Callable[[], float]) -> None:
        self.exits: list[Exit] = []
        self.starts = 0
        self.jvms: set[int] = set()
        self.log = folder / "up.log"
        self._clock = clock
        self._command = [sys.executable, "-m", "headrace", "up", "--wait", str(LEASE_WAIT), *places]
        temporary = folder / "tmp"
        temporary.mkdir()
        self._environment = {**os.environ, "TMPDIR": str(temporary)}
        self._cause: str | None = None
        self._ending = threading.Event()
        self._starting = threading.Lock()
        self._log_start = 0
        self._started = 0.0
        self.process = self._start()
        self._thread = threading.Thread(target=self._tend, name="service manager")
        self._thread.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def serving(self) -> bool:
        """Whether the daemon that runs has said that it serves."""
        return self.process.poll() is None and self._has_served()

    def _has_served(self) -> bool:
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return SERVING in log.read(4096)

    def log_end(self, lines: int = QUOTED) -> list[str]:
        """Return the last lines that the daemons of this soak have printed."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - lines * LINE))
            return log.read().decode(errors="replace").splitlines()[-lines:]

    def java(self) -> list[int]:
        found = java_below(self.pid)
        self.jvms.update(found)
        return found

    def kill(self) -> None:
        process = self._running()
        self._cause = "killed"
        process.kill()

    def restart(self) -> None:
        """Stop the daemon as a service manager does, and wait for its end."""
        self._stop(self._running())

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the daemon's process; wait for it while the service manager starts it again."""
        deadline = time.monotonic() + PATIENCE
        while (process := self.process).poll() is not None:
            if time.monotonic() > deadline:
                raise RuntimeError("the service manager did not start the daemon again")
            time.sleep(0.05)
        return process

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        ended = len(self.exits)
        # A Python process has no handlers in its first moments, and ends by the signal itself.
        self._cause = "stopped" if catches(process.pid, signal.SIGTERM) else "stopped at once"
        process.terminate()
        deadline = time.monotonic() + STOPPING
        while len(self.exits) == ended and time.monotonic() < deadline:
            time.sleep(0.05)
        if len(self.exits) == ended:
            self._cause = "did not stop"
            process.kill()

    def pause(self, seconds: float) -> None:
        """Stop the process itself for a while, as a machine without memory or a debugger does."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop the daemon for good."""
        with self._starting:
            self._ending.set()
        if self.process.poll() is None:
            self._stop(self.process)
        self._thread.join()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self.log.open("ab") as log:
            self._log_start, self._started = log.tell(), self._clock()
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
            at, said = self._clock(), "\n".join(self.log_end(LAST_WORDS))
            ended = Exit(at, code, self._cause, self._started, self._has_served(), said)
            self._cause = None
            self.exits.append(ended)
            if self._ending.wait(RESTART_AFTER):
                return
            with self._starting:
                if self._ending.is_set():
                    return
                self.process = self._start()
