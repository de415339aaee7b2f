"""psql on the project's database: the embedded server runs only while somebody has it open."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from headrace.cli.call import Call
from headrace.errors import HeadraceError, Unavailable


def psql(
    call: Call,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments of psql.")
    ] = None,
) -> int:
    """Open psql on the project's database; the exit code is psql's own."""
    from psycopg.conninfo import make_conninfo

    from headrace.source.conninfo import parse

    with call.project() as project, _interrupts_left_to_the_child():
        parts = parse(project.dsn)
        # The arguments of a process are visible to everybody on the machine.
        password = parts.pop("password", None)
        environment = os.environ | ({"PGPASSWORD": password} if password else {})
        command = [_program(), make_conninfo("", **parts), *(arguments or ())]
        return subprocess.run(command, env=environment, check=False).returncode


def _program() -> str:
    """The psql on the path, else that of the embedded PostgreSQL."""
    from headrace.embedded.binaries import find_binaries

    on_path = shutil.which("psql")
    if on_path is not None:
        return on_path
    try:
        return str(find_binaries().root / "bin" / "psql")
    except HeadraceError as error:
        raise Unavailable(
            "embedded-server-failed", "there is no psql", hint="Install PostgreSQL's client."
        ) from error


@contextmanager
def _interrupts_left_to_the_child() -> Iterator[None]:
    """Ctrl-C in psql cancels a query there and must not end us."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
