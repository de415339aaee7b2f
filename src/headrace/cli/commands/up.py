"""up: keep everything fresh, in the foreground, until told to stop."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from datetime import datetime
from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.words import plain

Wait = Annotated[
    float,
    typer.Option("--wait", help="Seconds to wait while another process is writing.", min=0),
]


def up(call: Invocation, wait: Wait = 10.0) -> None:
    """Keep stream tables fresh by their schedules, until Ctrl-C or SIGTERM.

    Takes in changes of the sources, refreshes what is due, and does what other commands ask for
    meanwhile. What is being done when it is told to stop is finished first.
    """
    with call.project(changes=True) as project:

        def tell(said: str) -> None:
            at = datetime.now().astimezone().strftime("%H:%M:%S")
            call.screen.show(plain(f"{at}  {said}"))

        for role in project.superuser_roles():
            tell(f"warning: role {role} is a superuser, which Headrace does not need")
        daemon = project.daemon(tell)

        with ExitStack() as restored:
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.signal(number, lambda *_: daemon.stop())
                restored.callback(signal.signal, number, before)
            daemon.run(wait)
        tell("stopped")
