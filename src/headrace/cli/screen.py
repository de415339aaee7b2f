"""Where output goes: data to stdout, everything else to stderr, no colours in a pipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from headrace.cli.exits import READER_GONE

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

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
            for one in what:
                self.out.print(one)

    def command(self, line: str) -> None:
        """Print a line that people copy: the terminal may break it, we do not."""
        if not self.as_json:
            self.out.print(line, soft_wrap=True)

    def note(self, text: str) -> None:
        """A remark beside the data: to stderr, so that a pipe gets data only."""
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
    """A console that takes text as it is: no markup, no emoji codes, no guessed highlights."""
    from rich.console import Console

    class QuietConsole(Console):
        def on_broken_pipe(self) -> None:
            reader_gone()

    piped = not stream.isatty() and "COLUMNS" not in os.environ
    width = pipe_width if piped else None
    return QuietConsole(file=stream, width=width, markup=False, emoji=False, highlight=False)


def as_text(content: Mapping[str, Any], stream: TextIO) -> str:
    """JSON with two blanks of indent; letters are escaped only where the stream has none."""
    unicode = (stream.encoding or "").lower().startswith("utf")
    return json.dumps(content, indent=2, ensure_ascii=not unicode) + "\n"


def write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        reader_gone()


def reader_gone() -> None:
    """The reader closed the pipe: be quiet, also at the last flush of the interpreter."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    raise SystemExit(READER_GONE)
