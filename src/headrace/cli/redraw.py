"""Showing something again and again: in place on a terminal, one after the other in a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.boundary.arguments import seconds
from headrace.cli.screen import Screen

if TYPE_CHECKING:
    from rich.console import RenderableType

Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Show it again and again, until Ctrl-C.")
]
Every = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Pause with --watch.")
]
Times = Annotated[
    int | None, typer.Option("--times", min=1, help="With --watch, end after so many times.")
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
    """Show what is seen now, and again after every pause; Ctrl-C is the usual end."""
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
