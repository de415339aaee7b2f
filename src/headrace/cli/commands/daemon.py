"""up, wait: keep stream tables fresh in the foreground, and wait until one is fresh."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from datetime import datetime
from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.early_stop import EARLY_STOP
from headrace.cli.targets import named, sql_name
from headrace.cli.words import plain, seconds
from headrace.errors import UserError

Wait = Annotated[
    float,
    typer.Option("--wait", help="Seconds to wait while another process is writing.", min=0),
]


def up(call: Invocation, wait: Wait = 10.0) -> None:
    """Keep stream tables fresh by their schedules, until Ctrl-C or SIGTERM.

    Takes in changes of the sources, refreshes what is due, and performs requests of other commands.
    A stop waits for the refresh or request that is running.
    """
    with ExitStack() as ended:
        ended.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        EARLY_STOP.install()
        project = ended.enter_context(call.project(changes=True))

        def report(said: str) -> None:
            at = datetime.now().astimezone().strftime("%H:%M:%S")
            call.screen.show(plain(f"{at}  {said}"))

        for role in project.superuser_roles():
            report(f"warning: role {role} is a superuser, which Headrace does not need")
        daemon = project.daemon(report)

        # A second SIGTERM leaves the project to be closed.
        signal.signal(signal.SIGTERM, lambda *_: daemon.stop())
        EARLY_STOP.check()
        before = signal.signal(signal.SIGINT, lambda *_: daemon.stop())
        try:
            daemon.run(wait)
        finally:
            signal.signal(signal.SIGINT, before)
        report("stopped")


Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Wait until the table shows all that is committed by now."),
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

    A daemon refreshes the table by its schedules. Without a daemon, or without a suitable schedule,
    this command does.
    """
    if not fresh:
        raise UserError("invalid-option", "no condition given", hint="headrace wait --fresh NAME")
    with call.project() as project:
        (table,) = named(project, [name])
        started = time.perf_counter()
        with call.doing(f"waiting for {table.name}"):
            epoch = project.wait_fresh(sql_name(table.name), timeout)
        took = time.perf_counter() - started
    call.screen.document({"table": table.name, "epoch": epoch, "seconds": took})
    call.screen.show(plain(f"{table.name} is fresh at epoch {epoch}, after {seconds(took)}"))
