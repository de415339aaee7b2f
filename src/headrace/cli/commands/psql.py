"""psql on the project's database: the embedded server runs only while somebody has it open."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.errors import HeadraceError, Unavailable, UserError
from headrace.files.private import users_umask


def psql(
    call: Invocation,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments of psql.")
    ] = None,
) -> int:
    """Open psql on the project's database; the exit code is psql's own."""
    with (
        call.project() as project,
        _interrupts_left_to_the_child(),
        without_secrets(project.dsn) as (address, secrets),
        users_umask(),
    ):
        command = [_program(), address, *(arguments or ())]
        return subprocess.run(command, env=os.environ | secrets, check=False).returncode


@contextmanager
def without_secrets(dsn: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the connection string without passwords, and variables by which libpq finds them.

    The arguments of a process are visible to everybody on the machine. There is no variable for the
    password of a client key: it is in a service file that is removed afterwards.
    """
    from psycopg.conninfo import make_conninfo

    from headrace.source.conninfo import parse

    parts = parse(dsn)
    password, key_password = parts.pop("password", None), parts.pop("sslpassword", None)
    secrets = {"PGPASSWORD": password} if password else {}
    if key_password is None:
        yield make_conninfo("", **parts), secrets
        return
    if "service" in parts or "PGSERVICE" in os.environ:
        raise UserError(
            "invalid-dsn",
            "psql cannot be given sslpassword besides a service",
            hint="Write sslpassword to the service file.",
        )
    if "\n" in key_password or key_password != key_password.strip():
        raise UserError(
            "invalid-dsn",
            "psql cannot be given this sslpassword: it begins or ends with white space, or has a"
            " line break",
        )
    with NamedTemporaryFile("w", prefix="headrace-", suffix=".conf") as file:
        file.write(f"[headrace]\nsslpassword={key_password}\n")
        file.flush()
        yield (
            make_conninfo("", **parts, service="headrace"),
            secrets | {"PGSERVICEFILE": file.name},
        )


def _program() -> str:
    """Return the psql on the path, else that of the embedded PostgreSQL."""
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
    """Ignore Ctrl-C while psql runs, where it cancels a query."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
