"""Write the pages of this folder that are made from code: errors.md and settings.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from headrace.cli.options import SHARED
from headrace.errors import BRANCHES
from headrace.settings import Places, Settings

FOLDER = Path(__file__).parent
NOTE = "<!-- Made from the code by `make docs`; a test compares them. -->"

_ERRORS = """\
# Errors

{note}

Every error that Headrace raises is a `HeadraceError` with a `code`, a short message and, where
they help, a detail and a hint. Programs compare codes: a code keeps its name, a message may change.
The branch an error belongs to decides whether trying again makes sense, and the exit code of the
command line.
"""

_SETTINGS = """\
# Settings

{note}

## Where things are

Given as arguments of `headrace.connect`, as options of every command, as variables, or in
`headrace.toml` in the home folder; the first of these that says something counts. A connection
string may be a reference, `env:NAME` or `file:PATH`, so that no password has to stand in a file of
the project.

{places}

## How a project behaves

Kept in the project's catalog. `headrace settings` lists them, `headrace set NAME VALUE` and
`hr.set(name, value)` change one, `headrace set NAME --default` and `hr.set(name, None)` take it
back.

{settings}
"""


def errors_page() -> str:
    """errors.md: one part for each branch, one line for each code."""
    parts = [_ERRORS.format(note=NOTE)]
    for branch in BRANCHES:
        rows = [(f"`{code}`", meaning) for code, meaning in branch.codes.items()]
        parts.append(f"## {branch.__name__}\n\n{branch.__doc__} Exit code {branch.exit_code}.\n")
        parts.append(table(("code", "meaning"), rows))
    return "\n".join(parts)


def settings_page() -> str:
    """settings.md: where things are, and how a project behaves."""
    helps = {name: _help(annotation) for name, annotation, _ in SHARED}
    places = [
        (f"`{name}`", f"`--{name.replace('_', '-')}`", f"`HEADRACE_{name.upper()}`", helps[name])
        for name in Places.model_fields
    ]
    settings = [
        (f"`{name}`", _shown(field.default), _type(field.annotation), field.description or "")
        for name, field in Settings.model_fields.items()
    ]
    return _SETTINGS.format(
        note=NOTE,
        places=table(("name", "option", "variable", "what it is"), places).rstrip(),
        settings=table(("name", "default", "type", "what it decides"), settings).rstrip(),
    )


def table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    lines = [headings, ("---",) * len(headings), *rows]
    cells = (" | ".join(cell.replace("|", r"\|") for cell in line) for line in lines)
    return "".join(f"| {line} |\n" for line in cells)


PAGES = (("errors.md", errors_page), ("settings.md", settings_page))


def _help(annotation: Any) -> str:
    """The help text of an option, without the variable that has a column of its own."""
    text: str = get_args(annotation)[1].help
    return text.partition(" (HEADRACE_")[0].rstrip(".") + "."


def _type(annotation: Any) -> str:
    names = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return names.get(annotation, str(annotation))


def _shown(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    for name, page in PAGES:
        (FOLDER / name).write_text(page(), encoding="utf-8")
