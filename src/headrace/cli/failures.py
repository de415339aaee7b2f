"""Report failures: message, detail and hint; a traceback only in the log file."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from headrace.cli.call import Invocation
from headrace.cli.exit_codes import STOPPED, USAGE
from headrace.cli.log import log_failure
from headrace.cli.screen import Screen, as_text, write
from headrace.errors import HeadraceError, InternalError, internal_error


def guarded(call: Invocation, command: str, act: Callable[[], int | None]) -> int:
    """Run a command; report any failure on stderr and return its exit code."""
    try:
        return act() or 0
    except HeadraceError as error:
        show_error(call.screen, error_document(error))
        if isinstance(error, InternalError):
            _log(call, command, error)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return stopped(call.screen)
    except Exception as error:  # noqa: BLE001
        unforeseen = internal_error(f"complete `headrace {command}`", error)
        show_error(call.screen, error_document(unforeseen))
        _log(call, command, unforeseen)
        return unforeseen.exit_code


def stopped(screen: Screen) -> int:
    """Report Ctrl-C; the library has rolled back what was not published."""
    show_error(
        screen, _document("stopped", "stopped; unfinished work was rolled back", code=STOPPED)
    )
    return STOPPED


def wrong_usage(screen: Screen, message: str, command: str) -> int:
    """Report a wrong command line."""
    hint = f"See the options with: {command} --help"
    show_error(screen, _document("usage", message, hint=hint, code=USAGE))
    return USAGE


def error_document(error: HeadraceError) -> dict[str, Any]:
    """Return the fields of an error, for programs; added notes are detail."""
    notes = [part for part in (error.detail, *getattr(error, "__notes__", ())) if part]
    return _document(
        error.code, error.message, "\n".join(notes) or None, error.hint, code=error.exit_code
    )


def _document(
    name: str, message: str, detail: str | None = None, hint: str | None = None, *, code: int
) -> dict[str, Any]:
    return {"code": name, "message": message, "detail": detail, "hint": hint, "exit_code": code}


def show_error(screen: Screen, document: dict[str, Any]) -> None:
    """Print an error to stderr, for people or as JSON."""
    if screen.as_json:
        write(sys.stderr, as_text({"error": document}, sys.stderr))
        return
    from rich.text import Text

    line = Text.assemble(
        ("error: ", "bold red"), document["message"], (f" [{document['code']}]", "dim")
    )
    screen.error.print(line, soft_wrap=True)
    for part in ("detail", "hint"):
        if document[part]:
            text = Text.assemble((f"{part}: ", "bold"), document[part])
            screen.error.print(text, soft_wrap=True)


def _log(call: Invocation, command: str, error: BaseException) -> None:
    try:
        file = log_failure(call.home, command, error)
    except OSError as refused:
        traceback.print_exception(error)
        call.screen.note(f"Could not write the log file: {refused}.")
        return
    call.screen.note(f"The traceback is in {file}. This is a bug: please report it.")
