"""Write what in this folder is made from code: whole pages, and blocks inside pages.

`docs/generate.py` needs neither a server nor Spark. `docs/generate.py tour` also runs the tour's
example, with an embedded PostgreSQL and a local Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin

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
    if get_origin(annotation) is Literal:
        *others, last = (f"`{value}`" for value in get_args(annotation))
        return f"{', '.join(others)} or {last}"
    return names.get(annotation, str(annotation))


def _shown(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def pure_blocks() -> dict[str, Mapping[str, str]]:
    """For every page with generated blocks, but the tour, those blocks by their names."""
    from docs.generators.edges import edges_table
    from docs.generators.layers import architecture_blocks
    from docs.generators.operators import operator_blocks
    from docs.generators.schedules import schedule_blocks
    from docs.generators.sql import sql_blocks
    from docs.generators.strata import strata_blocks
    from docs.generators.types import types_table

    return {
        "../ARCHITECTURE.md": architecture_blocks(),
        "sql.md": sql_blocks(),
        "types.md": {"types": types_table()},
        "edges.md": {"edges": edges_table()},
        "strata.md": strata_blocks(),
        "schedules.md": schedule_blocks(),
        **operator_blocks(),
    }


def tour_blocks() -> Mapping[str, str]:
    """The blocks of the tour, from a project in a folder that is removed afterwards."""
    import psycopg

    import headrace
    from docs.generators.tour import follow

    with (
        TemporaryDirectory() as home,
        headrace.connect(home=home) as hr,
        psycopg.connect(hr.dsn, autocommit=True) as sql,
    ):
        return follow(hr, sql)


def write(page: str, blocks: Mapping[str, str]) -> None:
    """Bring the blocks of a page up to date."""
    from docs.generators.blocks import refreshed

    path = FOLDER / page
    path.write_text(refreshed(path.read_text(encoding="utf-8"), blocks), encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    for name, made in PAGES:
        (FOLDER / name).write_text(made(), encoding="utf-8")
    for page, blocks in pure_blocks().items():
        write(page, blocks)
    if "tour" in arguments:
        write("tour.md", tour_blocks())


if __name__ == "__main__":
    # Run as a program, only this folder is importable, not the one it is in.
    sys.path.insert(0, str(FOLDER.parent))
    main(sys.argv[1:])
