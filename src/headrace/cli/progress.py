"""What is going on while something takes long: a spinner, or a bar where the end is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.cli.screen import Screen

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

BAR_WIDTH = 24


class Activity:
    """The line at the bottom of the terminal; nothing if stderr is not one.

    It is the `progress` of `headrace.connect`: what it is told is shown until it is done, then
    the line says again what the command is about.
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
    """Done of total as a bar and in numbers; empty if the total is not known."""
    if not total:
        return ""
    filled = BAR_WIDTH * done // total
    return "━" * filled + "╌" * (BAR_WIDTH - filled) + f" {done}/{total}"
