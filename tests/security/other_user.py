"""What another user of the machine can do: code that runs in a child as a user without rights."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Of nobody: neither the account of the tests nor one that a server may run as.
USER = GROUP = 54321

# Seconds after which a port that says nothing has not answered.
SILENCE = 1.0


def as_other_user(act: Callable[[], Any]) -> Any:
    """What `act` gives, which must be JSON, when another user does it. Needs root.

    That user may be unable to import anything more.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(GROUP, GROUP, GROUP)
            os.setresuid(USER, USER, USER)
            os.write(writer, json.dumps(act()).encode())
            os._exit(0)
        except BaseException:  # noqa: BLE001  nothing of the tests may go on in the child
            traceback.print_exc(file=sys.stderr)
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the child failed"
    return json.loads(said)


def readable(paths: Iterable[str]) -> list[str]:
    """Those of the files and folders that can be read, or of sockets connected to."""
    return [path for path in paths if _is_readable(path)]


def _is_readable(path: str) -> bool:
    try:
        found = os.lstat(path)
        if stat.S_ISSOCK(found.st_mode):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
        elif stat.S_ISDIR(found.st_mode):
            os.listdir(path)
        else:
            Path(path).open("rb").close()
    except OSError:
        return False
    return True


def _spark_request(body: bytes) -> bytes:
    """A request in the protocol of Spark's driver and block manager."""
    return struct.pack(">qBqi", 21 + len(body), 3, 1, len(body)) + body


def _text(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


# Without authentication a block manager answers the second, which opens no blocks, and the driver
# reads the third, a Java object, and complains that nobody is called `name`.
GREETINGS = {
    "nothing": b"\n",
    "open blocks": _spark_request(b"\0" + _text("app") + _text("1") + struct.pack(">i", 0)),
    "message": _spark_request(b"\0\0" + struct.pack(">h", 4) + b"name" + b"\xac\xed\0\5p"),
    "py4j": b"c\nz:java.lang.System\ncurrentTimeMillis\ne\n",
    "py4j with a token": b"A\nsguessed\n",
    "worker": _text("guessed"),
    "http": b"GET / HTTP/1.0\r\n\r\n",
}
# What Spark's failure to a stranger says, py4j's two, and a Python worker's.
REFUSALS = (
    b"Unknown challenge message",
    b"Authentication error",
    b"Unknown command received",
    _text("err"),
)
# A Python worker says the number of its process before it asks for the token.
NUMBER_BYTES = 4


def answers(port: int) -> dict[str, str]:
    """What a port says to a stranger besides a refusal, by greeting."""
    found = {}
    for name, greeting in GREETINGS.items():
        said = _said(port, greeting)
        refused = len(said) in (0, NUMBER_BYTES) or any(one in said for one in REFUSALS)
        if not refused:
            found[name] = repr(said)
    return found


def _said(port: int, greeting: bytes) -> bytes:
    said = b""
    try:
        with socket.socket() as connection:
            connection.settimeout(SILENCE)
            connection.connect(("127.0.0.1", port))
            connection.sendall(greeting)
            while part := connection.recv(65536):
                said += part
    except OSError:
        pass
    return said


def descendants(process: int) -> list[int]:
    """The process and its children, theirs, and so on."""
    found = [process]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def wait_until_gone(process: int) -> None:
    """Wait for the end of a process that is not a child of this one."""
    while Path(f"/proc/{process}/fd").exists():
        time.sleep(0.05)


def listening(processes: Iterable[int]) -> set[int]:
    """The TCP ports on which processes listen."""
    sockets = set()
    for process in processes:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            try:
                sockets.add(os.readlink(descriptor))
            except FileNotFoundError:
                continue
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports
