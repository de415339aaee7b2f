"""create, replace, refresh, drop: create, refresh and drop stream tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.documents import refresh_document, status_document
from headrace.cli.options import TableOptions, table_options
from headrace.cli.tables import phases, refreshed
from headrace.cli.targets import chosen, for_each, named, relation_names, sql_name
from headrace.cli.words import counted, plain, seconds
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.api import Headrace
    from headrace.observe.table_status import TableStatus

Mode = Annotated[
    str | None,
    typer.Option(
        "--mode", help="FULL, DIFFERENTIAL or AUTO for this refresh; the table's own if not given."
    ),
]
Query = Annotated[str | None, typer.Option("--query", "-q", help="The query.")]
File = Annotated[
    Path | None,
    typer.Option(
        "--file", "-f", help="A file with the query; - is the standard input.", allow_dash=True
    ),
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="As in SQL: totals, sales.totals.")]
RefreshMode = Annotated[
    str | None, typer.Option("--refresh-mode", help="AUTO (the default), DIFFERENTIAL or FULL.")
]
Schedule = Annotated[
    str | None,
    typer.Option(
        "--schedule", help="When to refresh the table, such as 30s; only by hand if not given."
    ),
]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Stream tables.")]
All = Annotated[bool, typer.Option("--all", help="All stream tables.")]


def create(
    call: Invocation,
    name: NewName,
    query: Query = None,
    file: File = None,
    refresh_mode: RefreshMode = None,
    schedule: Schedule = None,
    option: TableOptions = None,
) -> None:
    """Create a stream table of a query's result and fill it.

    The query comes from --query, from --file, or from the standard input.
    """
    text = query_text(query, file)
    options = table_options(option, schedule=schedule, refresh_mode=refresh_mode)
    _created(
        call,
        "creating",
        name,
        lambda project: project.create_stream_table(name, text, **options),
    )


def replace(
    call: Invocation,
    name: NewName,
    query: Query = None,
    file: File = None,
    refresh_mode: RefreshMode = None,
    schedule: Schedule = None,
    option: TableOptions = None,
) -> None:
    """Create a stream table, or give the existing one of that name another query and options.

    The served table is brought to the new rows and columns in place. The query comes from --query,
    from --file, or from the standard input.
    """
    text = query_text(query, file)
    options = table_options(option, schedule=schedule, refresh_mode=refresh_mode)
    _created(
        call,
        "replacing",
        name,
        lambda project: project.create_or_replace_stream_table(name, text, **options),
    )


def refresh(call: Invocation, names: Names = None, all_: All = False, mode: Mode = None) -> int:
    """Refresh stream tables to the newest state of their sources."""
    with call.project() as project:
        tables = chosen(project, names, everything=all_)
        done, failed = for_each(
            call, "refreshing", tables, lambda name: project.refresh(name, mode)
        )
        relations = relation_names(project) if call.screen.as_json else {}
    call.screen.document(
        {
            "refreshes": [refresh_document(*named_refresh, relations) for named_refresh in done],
            "errors": failed.documents,
        }
    )
    if done:
        call.screen.show(refreshed(done))
    if len(done) == 1:
        call.screen.show(f"{done[0][1].reason}; {phases(done[0][1])}")
    return failed.exit_code


def _created(
    call: Invocation, act: str, name: str, make: Callable[[Headrace], TableStatus]
) -> None:
    """Create a table, and print its rows and the time it took."""
    with call.project(changes=True) as project:
        started = time.perf_counter()
        with call.doing(f"{act} {name}"):
            table = make(project)
        took = time.perf_counter() - started
        first = project.history(sql_name(table.name), 1)
    call.screen.document(
        {"table": status_document(table, first[0] if first else None), "seconds": took}
    )
    rows = counted(sum(refresh.rows_inserted for refresh in first), "row")
    done = {"creating": "created", "replacing": "replaced"}[act]
    empty = f"; {table.reason}" if table.epoch == 0 else ""
    call.screen.show(plain(f"{done} {table.name}: {rows} in {seconds(took)}{empty}"))
    for notice in table.notices:
        call.screen.note(f"notice: {notice}")


def drop(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A stream table.")],
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Also drop the stream tables that read it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Drop a stream table, its served table and its log."""
    with call.project() as project:
        before = project.status()
        (table,) = named(project, [name])
        if not yes:
            readers = " and all stream tables that read it" if cascade else ""
            ask(f"Drop {plain(table.name)}{readers}, with what is served and stored?", "dropping")
        with call.doing(f"dropping {table.name}"):
            project.drop_stream_table(sql_name(table.name), cascade=cascade)
        left = {status.name for status in project.status()}
    gone = [status.name for status in before if status.name not in left]
    call.screen.document({"dropped": gone})
    for name in gone:
        call.screen.show(plain(f"dropped {name}"))


def query_text(query: str | None, file: Path | None) -> str:
    """Return the query from the command line, a file, or standard input."""
    if query is not None and file is not None:
        raise UserError("invalid-option", "--query and --file cannot be used together")
    if query is not None:
        return query
    if file is not None and str(file) != "-":
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                "invalid-option", f"could not read a query from {file}", detail=str(error)
            ) from None
    if file is None and sys.stdin.isatty():
        raise UserError(
            "invalid-option",
            "no query given",
            hint="Give it with --query, with --file, or on the standard input.",
        )
    return sys.stdin.read()


def ask(question: str, doing: str) -> None:
    """Ask on a terminal and stop on no; without a terminal, require --yes."""
    if not sys.stdin.isatty():
        raise UserError(
            "invalid-option",
            f"{doing} needs confirmation",
            hint="There is no terminal to ask on. Confirm with --yes.",
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Abort
