"""Errors go to stderr, with an exit code, and without a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.cli.exit_codes import EXITS, SUMMARY
from headrace.errors import BRANCHES, HeadraceError, InternalError, UserError
from tests.cli.conftest import Headrace
from tests.cli.examples import MemoryProject


@pytest.mark.parametrize("branch", BRANCHES)
def test_an_error_is_reported_with_its_code(
    branch: type[HeadraceError], project: MemoryProject, headrace: Headrace
) -> None:
    code = next(iter(branch.codes))
    project.fails["totals"] = branch(code, "it [red]cannot[/red] be", detail="Why.", hint="Do.")
    result = headrace("explain", "totals")
    assert (result.code, result.out) == (branch.exit_code, "")
    lines = result.error.splitlines()[:3]
    assert lines == [f"error: it [red]cannot[/red] be [{code}]", "detail: Why.", "hint: Do."]
    assert "Traceback" not in result.error
    result = headrace("explain", "totals", "--json")
    assert (result.code, result.out) == (branch.exit_code, "")
    assert json.loads(result.error) == {
        "error": {
            "code": code,
            "message": "it [red]cannot[/red] be",
            "detail": "Why.",
            "hint": "Do.",
            "exit_code": branch.exit_code,
        }
    }
    assert project.calls[-1] == ("close",)


def test_notes_are_detail(project: MemoryProject, headrace: Headrace) -> None:
    error = UserError("invalid-query", "no")
    error.add_note("and the history could not be written: disk full")
    project.fails["totals"] = error
    assert "detail: and the history could not be written" in headrace("explain", "totals").error


def test_a_bug_is_short_on_the_screen_and_long_in_the_log(
    project: MemoryProject, headrace: Headrace, tmp_path: Path
) -> None:
    project.fails["totals"] = ZeroDivisionError("division by zero\nsecond line")
    result = headrace("explain", "totals")
    assert result.code == 70
    log = tmp_path / "log" / "headrace.log"
    assert result.error.splitlines() == [
        "error: could not complete `headrace explain`: an internal error occurred [internal-error]",
        "detail: ZeroDivisionError: division by zero",
        f"The traceback is in {log}. This is a bug: please report it.",
    ]
    assert "Traceback" in log.read_text()
    assert "headrace explain" in log.read_text()


def test_an_internal_error_is_logged_too(
    project: MemoryProject, headrace: Headrace, tmp_path: Path
) -> None:
    project.fails["totals"] = InternalError("invariant", "a weight is negative")
    assert headrace("explain", "totals").code == 70
    assert "a weight is negative" in (tmp_path / "log" / "headrace.log").read_text()


def test_a_log_that_cannot_be_written_hides_nothing(
    project: MemoryProject, headrace: Headrace, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("not a folder")
    project.fails["totals"] = ZeroDivisionError("division by zero")
    result = headrace("explain", "totals")
    assert result.code == 70
    assert "Traceback" in result.error
    assert "Could not write the log file" in result.error


def test_an_interrupt_is_reported(project: MemoryProject, headrace: Headrace) -> None:
    project.fails["public.totals"] = KeyboardInterrupt()
    result = headrace("refresh", "totals")
    assert result.code == 130
    assert result.error == "error: stopped; unfinished work was rolled back [stopped]\n"
    assert project.calls[-1] == ("close",)
    assert json.loads(headrace("refresh", "totals", "--json").error)["error"]["exit_code"] == 130


def test_the_summary_names_the_exit_codes() -> None:
    numbers = [number for number, _ in EXITS]
    assert len(set(numbers)) == len(numbers)
    for number in set(numbers) - {141}:
        assert f" {number} " in SUMMARY
