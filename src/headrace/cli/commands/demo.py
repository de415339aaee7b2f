"""demo: a small shop whose stream tables are kept fresh before your eyes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.exit_codes import DONE, NOT_EQUAL
from headrace.cli.screen import Screen
from headrace.errors import UserError
from headrace.files.temporary import DEMO, temporary_folder

if TYPE_CHECKING:
    from headrace.api import Headrace

LONGEST_DEMO = 86_400.0
MOST_LINES = 100_000_000
# In a pipe the rules between the parts have to end somewhere.
PIPE_WIDTH = 80


def demo(
    call: Invocation,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, max=LONGEST_DEMO, help="How long the shop is open.")
    ] = 30,
    lines: Annotated[
        int,
        typer.Option(
            "--lines", min=100, max=MOST_LINES, help="About how many order lines it starts with."
        ),
    ] = 40_000,
) -> int:
    """Watch a small shop's stream tables being kept fresh for half a minute.

    It runs in a PostgreSQL of its own, in a temporary folder, or in --home to keep it.
    """
    from headrace.cli.demo_report import demo_document, show_event, show_outcome
    from headrace.demo.run import Demo

    options = call.given
    if options.dsn or options.setup_dsn or options.store:
        raise UserError(
            "invalid-option",
            "the demo has a PostgreSQL and a store of its own",
            hint="It takes --home and --spark, but neither --dsn, --setup-dsn nor --store.",
        )
    screen = Screen(as_json=options.json, pipe_width=PIPE_WIDTH)
    with _home(options.home) as home, _project(call, home) as project:
        outcome = Demo(project, lines, seconds, partial(show_event, screen), call.doing).run()
    is_kept = options.home is not None
    screen.document(demo_document(outcome, home if is_kept else None))
    show_outcome(screen, outcome, home, kept=is_kept)
    return DONE if outcome.equal else NOT_EQUAL


@contextmanager
def _home(home: Path | None) -> Iterator[Path]:
    """Yield the folder to use: the one that was named, or a new one that is removed afterwards."""
    if home is not None:
        yield home
        return
    with temporary_folder(DEMO) as folder:
        yield folder


def _project(call: Invocation, home: Path) -> Headrace:
    """Return a project that reads no variables and no file: they may name a user's database."""
    from headrace.api import Headrace
    from headrace.cli.log import keep_log
    from headrace.settings import Places

    keep_log(home)
    where = Places.model_construct(home=home, spark=call.given.spark)
    with call.doing("starting PostgreSQL"):
        return Headrace(where, None, call.activity)
