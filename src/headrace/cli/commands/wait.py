"""wait: until a stream table shows what was committed."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.naming import named, sql_name
from headrace.cli.words import plain, seconds
from headrace.errors import UserError

Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Until it shows all that is committed by now."),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait."),
]


def wait(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A stream table.")],
    fresh: Fresh = False,
    timeout: Timeout = 60.0,
) -> None:
    """Wait until a stream table is fresh: it shows all that was committed before.

    A daemon brings that about by its schedules. Without one, and where no schedule would, the table
    is refreshed.
    """
    if not fresh:
        raise UserError("invalid-option", "wait needs to know for what", hint="Say --fresh.")
    with call.project() as project:
        (table,) = named(project, [name])
        started = time.perf_counter()
        with call.doing(f"waiting for {table.name}"):
            epoch = project.wait_fresh(sql_name(table.name), timeout)
        took = time.perf_counter() - started
    call.screen.document({"table": table.name, "epoch": epoch, "seconds": took})
    call.screen.show(plain(f"{table.name} is fresh at epoch {epoch}, after {seconds(took)}"))
