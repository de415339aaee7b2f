"""status --watch and wait: what they ask again and again, and how they end."""

from __future__ import annotations

import json
import sys

import pytest

from headrace.cli import screen
from headrace.errors import Transient
from tests.cli.conftest import Headrace
from tests.cli.examples import MemoryProject, table


class Pauses:
    """A `time` for redraw that keeps the pauses, does something in each, and may interrupt.

    Only that of redraw: threads of other tests sleep, too.
    """

    def __init__(self, project: MemoryProject, interrupted_after: int | None = None) -> None:
        self.project = project
        self.seconds: list[float] = []
        self.interrupted_after = interrupted_after

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.project.tables = (table(epoch=7 + len(self.seconds)),)
        if len(self.seconds) == self.interrupted_after:
            raise KeyboardInterrupt


def test_a_pipe_gets_one_table_after_the_other(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = Pauses(project)
    monkeypatch.setattr(screen, "time", pauses)
    result = headrace("status", "--watch", "--every", "0.5", "--times", "3")
    assert (result.code, pauses.seconds) == (0, [0.5, 0.5])
    lines = [line.split() for line in result.out.splitlines() if line.startswith("public.totals")]
    assert [line[2] for line in lines] == ["7", "8", "9"]
    assert "\x1b" not in result.out


def test_programs_get_one_document_after_the_other(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "time", Pauses(project))
    text = headrace("status", "-w", "--times", "2", "--json").out
    first, end = json.JSONDecoder().raw_decode(text)
    second = json.loads(text[end:])
    assert [one["tables"][0]["epoch"] for one in (first, second)] == [7, 8]


def test_ctrl_c_is_the_usual_end(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "time", Pauses(project, interrupted_after=2))
    result = headrace("status", "--watch")
    assert (result.code, result.error) == (0, "")
    assert result.out.count("public.totals") == 2
    assert project.calls[-1] == ("close",)


def test_a_terminal_is_drawn_in_place(
    project: MemoryProject, headrace: Headrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "time", Pauses(project))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    result = headrace("status", "--watch", "--times", "2")
    assert result.code == 0
    assert result.out.count("public.totals") >= 2
    assert "\x1b[1A" in result.out, "the cursor goes back up to draw over what was there"


def test_wait(project: MemoryProject, headrace: Headrace) -> None:
    result = headrace("wait", "totals", "--fresh", "--timeout", "5")
    assert (result.code, project.calls[0]) == (0, ("wait", "public.totals", 5.0))
    assert result.out.startswith("public.totals is fresh at epoch 9, after ")
    document = headrace("wait", "totals", "--fresh", "--json").document
    assert (document["table"], document["epoch"]) == ("public.totals", 9)
    assert ("wait", "public.totals", 60.0) in project.calls


def test_wait_says_what_it_lacks(project: MemoryProject, headrace: Headrace) -> None:
    assert headrace("wait", "nothing", "--fresh").code == 2
    refused = headrace("wait", "totals")
    assert (refused.code, "--fresh" in refused.error) == (2, True)
    project.fails["public.totals"] = Transient("wait-timeout", "it did not become fresh in 5 s")
    late = headrace("wait", "totals", "--fresh")
    assert (late.code, "wait-timeout" in late.error) == (4, True)
