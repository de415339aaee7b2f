from __future__ import annotations

import io

import pytest

from headrace.cli.screen import Activity, Screen, bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar() -> None:
    assert bar(0, 0) == ""
    assert bar(0, 3) == "╌" * 24 + " 0/3"
    assert bar(1, 3) == "━" * 8 + "╌" * 16 + " 1/3"
    assert bar(3, 3) == "━" * 24 + " 3/3"


def test_the_line_is_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    activity = Activity(Screen())
    with activity.doing("creating totals"):
        activity("copying public.t", 1, 3)
    assert pipe.getvalue() == ""


def test_the_line_says_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    screen = Screen()
    activity = Activity(screen)
    activity("nobody is watching", 0, 0)
    seen = []
    with activity.doing("creating totals"), activity.doing("inside"):
        for step in (("starting Spark", 0, 0), ("copying public.t", 1, 3), ("copying", 3, 3)):
            activity(*step)
            progress = activity._progress
            assert progress is not None
            (task,) = progress.tasks
            seen.append((task.description, task.fields["amount"]))
    assert seen == [
        ("starting Spark", ""),
        ("copying public.t", bar(1, 3)),
        ("creating totals", ""),
    ]
    assert terminal.getvalue().endswith("\x1b[2K")
