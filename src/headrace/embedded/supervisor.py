"""The parent process of the embedded server, which stops it after its last user.

A separate program that uses the standard library only. It leaves the terminal's session, so that
Ctrl-C does not reach the server, and starts the server with `server.lock` inherited. Then it waits
for an exclusive lock on `holders.lock`, which it gets when the last holder has closed or died. That
lock makes new holders wait until the server is down.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

FAST_SHUTDOWN = signal.SIGINT
IMMEDIATE_SHUTDOWN = signal.SIGQUIT
GRACE_SECONDS = 20.0


def main(task: dict[str, Any]) -> None:
    """Run the server that `task` describes, in a process without parent or terminal."""
    if os.fork():
        os._exit(0)
    os.setsid()
    lock: int = task["server_lock"]
    server = subprocess.Popen(
        task["command"],
        stdin=subprocess.DEVNULL,
        cwd="/",
        umask=0o077,
        pass_fds=(lock,),
        **task["spawn_options"],
    )
    # Record the server process: for closing the server, and to detect a stale postmaster.pid.
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps({"pid": server.pid, "socket": task["socket"]}).encode(), 0)
    os.close(lock)
    threading.Thread(target=stop_when_unused, args=(server, task["holders"]), daemon=True).start()
    server.wait()


def stop_when_unused(server: subprocess.Popen[bytes], holders: str) -> None:
    """Wait until no process holds `holders`, then shut the server down."""
    descriptor = os.open(holders, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    server.send_signal(FAST_SHUTDOWN)
    try:
        server.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        server.send_signal(IMMEDIATE_SHUTDOWN)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
