"""ls, status, history, explain, health: what there is and what was done. Starts no Spark."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.commands.change import File, Query, query_text
from headrace.cli.documents import (
    explanation_document,
    listed_document,
    refresh_document,
    status_document,
)
from headrace.cli.exit_codes import DONE, NOT_WELL
from headrace.cli.screen import Every, Picture, Times, Watch, redraw
from headrace.cli.tables import (
    circumstances,
    listed,
    phases,
    place,
    remembered,
    standing,
    table_of,
    troubles,
)
from headrace.cli.targets import named, relation_names, sql_name
from headrace.cli.words import plain
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.api import Headrace
    from headrace.catalog.records import Refresh
    from headrace.refresh.explain import Explanation

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Stream tables; all if none is given."),
]

NONE_YET = "There are no stream tables yet; `headrace create` makes one."


def ls(call: Invocation) -> None:
    """List the stream tables."""
    with call.project() as project:
        tables = project.status()
    call.screen.document({"tables": [listed_document(table) for table in tables]})
    if not tables:
        call.screen.note(NONE_YET)
        return
    call.screen.show(listed(tables))


def status(
    call: Invocation,
    names: Names = None,
    watch: Watch = False,
    every: Every = 2.0,
    times: Times = None,
) -> None:
    """Show the epoch, the lag and the latest refresh of every stream table.

    behind, on wide terminals, is how long a table has lacked available changes; after the plus, the
    longest such time of its inputs.
    """
    with call.project() as project:
        if watch:
            redraw(call.screen, lambda: _standing(call, project, names), every, times)
            return
        picture = _standing(call, project, names)
    picture.print(call.screen)


def _standing(call: Invocation, project: Headrace, requested: list[str] | None) -> Picture:
    """Return the status of the stream tables now."""
    tables = named(project, requested) if requested else project.status()
    histories = ((table.name, project.history(sql_name(table.name), 1)) for table in tables)
    last = {name: refreshes[0] for name, refreshes in histories if refreshes}
    names = relation_names(project) if call.screen.as_json else {}
    documents = [status_document(table, last.get(table.name), names) for table in tables]
    document = {"tables": documents}
    if not tables:
        return Picture(document, note=NONE_YET)
    lines = [line for table in tables for line in troubles(table)]
    lines += [line for table in tables for line in (place(table) if requested else ())]
    return Picture(document, (standing(tables, last, call.screen.out.width), *map(plain, lines)))


def history(
    call: Invocation,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A stream table; all if not given.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many.")] = 20,
) -> None:
    """Show the latest refreshes, newest first; of one stream table also where the time went."""
    with call.project() as project:
        refreshes = _history(project, name, limit)
        names = relation_names(project)
    call.screen.document(
        {"refreshes": [refresh_document(*named_refresh, names) for named_refresh in refreshes]}
    )
    if not refreshes:
        call.screen.note("No refresh has run yet.")
        return
    call.screen.show(remembered(refreshes))
    for table, refresh in refreshes:
        if refresh.error:
            call.screen.show(plain(f"{table} failed: {refresh.error}"))
    if name is not None:
        latest = refreshes[0][1]
        call.screen.show(f"latest: {latest.reason}; {phases(latest)}")
        call.screen.show(*map(plain, circumstances(latest, names)))


def _history(project: Headrace, name: str | None, limit: int) -> list[tuple[str, Refresh]]:
    """Return the latest refreshes of the tables that exist, each with its table's name."""
    tables = named(project, [name]) if name is not None else project.status()
    refreshes: list[tuple[str, Refresh]] = [
        (table.name, refresh)
        for table in tables
        for refresh in project.history(sql_name(table.name), limit)
    ]
    refreshes.sort(
        key=lambda named_refresh: (named_refresh[1].started_at, named_refresh[1].id or 0),
        reverse=True,
    )
    return refreshes[:limit]


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
    from_query = query is not None or file is not None
    if (name is not None) == from_query:
        raise UserError(
            "invalid-option",
            "explain requires either a name or a query",
            hint="Name a stream table, or give a query with --query or --file.",
        )
    text = query_text(query, file) if from_query else None
    with call.project() as project:
        explanation = project.explain(name, query=text)
    call.screen.document(explanation_document(explanation))
    _show(call, explanation)


def _show(call: Invocation, explanation: Explanation) -> None:
    """Print the library's own text, with the headings of its parts in bold."""
    from rich.text import Text

    for line in str(explanation).splitlines():
        heading = bool(line) and not line.startswith(" ")
        call.screen.show(Text(plain(line), style="bold" if heading else ""))


Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 also on warnings.")]


def health(call: Invocation, strict: Strict = False) -> int:
    """Report the health of the project; the exit code is 1 if something is critical.

    The checks cover the daemon, stream tables, lag, capture, disk and roles.
    """
    with call.project() as project:
        report = project.health_check()
    call.screen.document(
        {"level": report.level, "checks": [asdict(check) for check in report.checks]}
    )
    rows = ((check.area, check.level, plain(check.detail)) for check in report.checks)
    call.screen.show(table_of(("area", "level", "detail"), rows, prose="detail"))
    bad = ("critical", "warning") if strict else ("critical",)
    return NOT_WELL if report.level in bad else DONE
