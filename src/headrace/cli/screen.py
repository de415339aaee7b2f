"""Print output: data to stdout, all else to stderr; progress and repeated output on a terminal.

There are no colours in a pipe.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from headrace.boundary.arguments import seconds
from headrace.cli.exit_codes import READER_GONE

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID

# Output into a file or a pipe is not wrapped: a line there is a row.
UNWRAPPED = 1000


class Screen:
    """The two streams of one call; with `as_json` only `document` writes to stdout."""

    def __init__(self, *, as_json: bool = False, pipe_width: int = UNWRAPPED) -> None:
        self.as_json = as_json
        self._pipe_width = pipe_width
        self._consoles: dict[str, Console] = {}

    @property
    def out(self) -> Console:
        return self._console("stdout", sys.stdout)

    @property
    def error(self) -> Console:
        return self._console("stderr", sys.stderr)

    def show(self, *what: RenderableType) -> None:
        """Print for people; nothing with --json."""
        if not self.as_json:
            for renderable in what:
                self.out.print(renderable)

    def command(self, line: str) -> None:
        """Print a line that people copy: the terminal may break it, we do not."""
        if not self.as_json:
            self.out.print(line, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a remark to stderr, so that a pipe gets data only."""
        if not self.as_json:
            self.error.print(text, style="dim", soft_wrap=True)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print the one JSON document for programs; nothing without --json."""
        if self.as_json:
            write(sys.stdout, as_text(content, sys.stdout))

    def _console(self, name: str, stream: TextIO) -> Console:
        if name not in self._consoles:
            self._consoles[name] = console(stream, self._pipe_width)
        return self._consoles[name]


def console(stream: TextIO, pipe_width: int = UNWRAPPED) -> Console:
    """Return a console that prints text unchanged: no markup, no emoji codes, no highlights."""
    from rich.console import Console

    class QuietConsole(Console):
        def on_broken_pipe(self) -> None:
            reader_gone()

    piped = not stream.isatty() and "COLUMNS" not in os.environ
    width = pipe_width if piped else None
    return QuietConsole(file=stream, width=width, markup=False, emoji=False, highlight=False)


def as_text(content: Mapping[str, Any], stream: TextIO) -> str:
    """Return indented JSON; letters are escaped only if the stream's encoding lacks them."""
    unicode = (stream.encoding or "").lower().startswith("utf")
    return json.dumps(content, indent=2, ensure_ascii=not unicode) + "\n"


def write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        reader_gone()


def reader_gone() -> None:
    """Exit after the reader closed the pipe; nothing is printed, at the last flush either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    raise SystemExit(READER_GONE)


BAR_WIDTH = 24


class Activity:
    """The line of progress at the bottom of the terminal; nothing if stderr is none.

    It is the `progress` of `headrace.connect`: reported work is shown until it is done, then
    the line shows again what the command does.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._about = ""

    @contextmanager
    def doing(self, about: str) -> Iterator[None]:
        """Show the line while the block runs, and remove it afterwards."""
        if self._progress is not None or not self._screen.error.is_terminal:
            yield
            return
        with self._line() as progress:
            self._progress, self._about = progress, about
            self._task = progress.add_task(about, total=None, amount="")
            try:
                yield
            finally:
                self._progress = None

    def __call__(self, what: str, done: int, total: int) -> None:
        progress, task = self._progress, self._task
        if progress is None or task is None:
            return
        if total and done >= total:
            progress.update(task, description=self._about, amount="")
        else:
            progress.update(task, description=what, amount=bar(done, total))

    def _line(self) -> Progress:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[amount]}", markup=False, style="cyan"),
            TimeElapsedColumn(),
            console=self._screen.error,
            transient=True,
        )


def bar(done: int, total: int) -> str:
    """Return `done` of `total` as a bar and in numbers; empty if the total is not known."""
    if not total:
        return ""
    filled = BAR_WIDTH * done // total
    return "━" * filled + "╌" * (BAR_WIDTH - filled) + f" {done}/{total}"


Watch = Annotated[bool, typer.Option("--watch", "-w", help="Redraw until Ctrl-C.")]
Every = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Pause with --watch.")
]
Times = Annotated[
    int | None, typer.Option("--times", min=1, help="With --watch, stop after this many times.")
]


@dataclass(frozen=True)
class Picture:
    """What is to be seen at one moment: a document for programs, and text for people."""

    document: Mapping[str, Any]
    text: tuple[RenderableType, ...] = ()
    note: str | None = None

    def print(self, screen: Screen) -> None:
        screen.document(self.document)
        screen.show(*self.text)
        if self.note is not None:
            screen.note(self.note)


def redraw(
    screen: Screen, look: Callable[[], Picture], every: float, times: int | None = None
) -> None:
    """Print a picture now and after every pause, until Ctrl-C."""
    seconds("--every", every)
    with suppress(KeyboardInterrupt):
        if screen.as_json or not screen.out.is_terminal:
            _print(screen, look, every, times)
        else:
            _draw(screen, look, every, times)


def _print(screen: Screen, look: Callable[[], Picture], every: float, times: int | None) -> None:
    done = 0
    while True:
        look().print(screen)
        done += 1
        if done == times:
            return
        time.sleep(every)


def _draw(screen: Screen, look: Callable[[], Picture], every: float, times: int | None) -> None:
    from rich.console import Group
    from rich.live import Live

    def drawn() -> Group:
        picture = look()
        return Group(*picture.text, *([picture.note] if picture.note else []))

    with Live(drawn(), console=screen.out, auto_refresh=False) as live:
        done = 1
        while done != times:
            time.sleep(every)
            live.update(drawn(), refresh=True)
            done += 1
