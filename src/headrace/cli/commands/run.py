"""run: statements about stream tables, from files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.call import Invocation
from headrace.cli.exit_codes import DONE, NOT_EQUAL
from headrace.cli.words import plain
from headrace.errors import HeadraceError, UserError

if TYPE_CHECKING:
    from headrace.commands.run import Done


def run(
    call: Invocation,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files with statements; - is the standard input.",
            allow_dash=True,
        ),
    ],
) -> int:
    """Run CREATE, ALTER, DROP, REFRESH and VERIFY STREAM TABLE statements.

    All files are read before anything is done. Consecutive CREATE statements are performed
    together, and their tables may read each other.
    """
    from headrace.statements import parse

    texts = [(file, statements_text(file)) for file in files]
    for file, text in texts:
        with naming(file):
            parse(text)
    done: list[Done] = []
    with call.project(changes=True) as project:
        for file, text in texts:
            with call.doing(f"running {file}"), naming(file):
                done += project.run(text)
    call.screen.document({"done": [_document(outcome) for outcome in done]})
    for outcome in done:
        call.screen.show(plain(f"{outcome.act} {outcome.table}"))
        for notice in outcome.notices:
            call.screen.note(f"notice: {notice}")
    return NOT_EQUAL if any(outcome.equal is False for outcome in done) else DONE


def _document(done: Done) -> dict[str, Any]:
    verdict = {} if done.equal is None else {"equal": done.equal}
    notices = {"notices": list(done.notices)} if done.notices else {}
    return {"act": done.act, "table": done.table, **verdict, **notices}


def statements_text(file: Path) -> str:
    """Return the text of a file of statements, or of the standard input."""
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("invalid-option", f"could not read {file}", detail=str(error)) from None


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the name of the file to the detail of an error raised inside."""
    try:
        yield
    except HeadraceError as error:
        where = "" if str(file) == "-" else f"In {file}."
        error.detail = " ".join(part for part in (error.detail, where) if part) or None
        raise
