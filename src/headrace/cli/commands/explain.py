"""explain: what a refresh would do, also of a table that is not there yet. No Spark is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.commands.change import File, Query, query_text
from headrace.cli.documents import explanation_document
from headrace.cli.words import plain
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.refresh.explain import Explanation


def explain(
    call: Invocation,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A stream table that exists.")
    ] = None,
    query: Query = None,
    file: File = None,
) -> None:
    """Show the plan, the steps of a refresh, and the Spark SQL of every stage.

    Of a stream table by its name, or of a query before anything is created.
    """
    asked = query is not None or file is not None
    if (name is not None) == asked:
        raise UserError(
            "invalid-option",
            "explain takes either a name or a query",
            hint="Name a stream table, or give a query with --query or --file.",
        )
    text = query_text(query, file) if asked else None
    with call.project() as project:
        explanation = project.explain(name, query=text)
    call.screen.document(explanation_document(explanation))
    _show(call, explanation)


def _show(call: Invocation, explanation: Explanation) -> None:
    """The library's own text, with the lines that begin a part made bold."""
    from rich.text import Text

    for line in str(explanation).splitlines():
        heading = bool(line) and not line.startswith(" ")
        call.screen.show(Text(plain(line), style="bold" if heading else ""))
