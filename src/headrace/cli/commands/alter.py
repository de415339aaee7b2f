"""alter, suspend, resume, reinit, repair: change existing stream tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.call import Invocation
from headrace.cli.commands.change import All, File, Names, Query, query_text
from headrace.cli.documents import refresh_document, status_document
from headrace.cli.options import TableOptions, table_options
from headrace.cli.tables import refreshed, table_of
from headrace.cli.targets import Failed, chosen, for_each, named, relation_names, sql_name
from headrace.cli.words import plain
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.observe.table_status import TableStatus

Name = Annotated[str, typer.Argument(metavar="NAME", help="A stream table.")]


def alter(
    call: Invocation,
    name: Name,
    query: Query = None,
    file: File = None,
    refresh_mode: Annotated[
        str | None, typer.Option("--refresh-mode", help="AUTO, DIFFERENTIAL or FULL.")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option("--schedule", help="When to refresh the table, such as 30s.")
    ] = None,
    no_schedule: Annotated[
        bool, typer.Option("--no-schedule", help="Refresh the table only by hand.")
    ] = False,
    rename_to: Annotated[
        str | None, typer.Option("--rename-to", help="New name of the table.")
    ] = None,
    option: TableOptions = None,
) -> None:
    """Change the query, the options or the name of a stream table, all or nothing.

    Another query recomputes the table and all that read it, and brings the served table to the new
    rows and columns in place.
    """
    changes: dict[str, Any] = {}
    if query is not None or file is not None:
        changes["query"] = query_text(query, file)
    changes |= table_options(option, schedule=schedule, refresh_mode=refresh_mode)
    if no_schedule and "schedule" in changes:
        raise UserError("invalid-option", "--schedule and --no-schedule cannot be used together")
    if no_schedule:
        changes["schedule"] = None
    if rename_to is not None:
        changes["rename_to"] = rename_to
    if not changes:
        raise UserError("invalid-option", "nothing to alter: give at least one option")
    with call.project() as project:
        (table,) = named(project, [name])
        with call.doing(f"altering {table.name}"):
            altered = project.alter_stream_table(sql_name(table.name), **changes)
    _show(call, "altered", altered)


def suspend(call: Invocation, names: Names = None, all_: All = False) -> int:
    """Suspend stream tables until they are resumed; what they serve stays readable.

    A running refresh ends first. --all skips tables that are already suspended, unless they would
    go on by themselves.
    """
    with call.project() as project:
        tables = chosen(project, names, everything=all_)
        going = [
            table
            for table in tables
            if not all_ or table.status != "SUSPENDED" or table.resumes_by_itself
        ]
        done, failed = for_each(call, "suspending", going, project.suspend)
    return _show_all(call, "suspended", done, failed)


def resume(
    call: Invocation,
    names: Names = None,
    all_: All = False,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Take in the change that was larger than max_change_rows."),
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Compute them from scratch in any case.")
    ] = False,
) -> int:
    """Resume suspended stream tables; after a change of their sources they are rebuilt.

    --all takes those that were suspended by hand.
    """
    if apply and (rebuild or all_):
        raise UserError("invalid-option", "--apply cannot be used with --all or --rebuild")
    mode = "apply" if apply else "rebuild" if rebuild else None
    with call.project() as project:
        tables = chosen(project, names, everything=all_)
        resumable = [table for table in tables if not all_ or table.held]
        done, failed = for_each(
            call, "resuming", resumable, lambda name: project.resume(name, mode)
        )
    return _show_all(call, "resumed", done, failed)


def reinit(call: Invocation, names: Names = None, all_: All = False) -> int:
    """Rebuild stream tables from their inputs, also where logs are lost or damaged."""
    with call.project() as project:
        tables = chosen(project, names, everything=all_)
        done, failed = for_each(call, "reinitialising", tables, project.reinit)
        relations = relation_names(project) if call.screen.as_json else {}
    documents = [refresh_document(*named_refresh, relations) for named_refresh in done]
    call.screen.document({"refreshes": documents, "errors": failed.documents})
    if done:
        call.screen.show(refreshed(done))
    return failed.exit_code


def _show(call: Invocation, act: str, table: TableStatus) -> None:
    call.screen.document({"table": status_document(table)})
    call.screen.show(plain(f"{act} {table.name}"))
    for notice in table.notices:
        call.screen.note(f"notice: {notice}")


def _show_all(
    call: Invocation, act: str, done: list[tuple[str, TableStatus]], failed: Failed
) -> int:
    call.screen.document(
        {"tables": [status_document(table) for _, table in done], "errors": failed.documents}
    )
    for name, _ in done:
        call.screen.show(plain(f"{act} {name}"))
    if not done and not failed.errors:
        call.screen.note(f"No stream table needed to be {act}.")
    return failed.exit_code


def repair(call: Invocation) -> None:
    """Read all that is stored, and rebuild what is lost or damaged.

    Damaged sources are copied again, and no others; damaged stream tables are rebuilt, with all
    that read them.
    """
    with call.project() as project, call.doing("repairing"):
        damages = project.repair()
    call.screen.document({"damages": [asdict(item) for item in damages]})
    if not damages:
        call.screen.show("nothing is damaged")
        return
    rows = [
        (item.name, item.kind, "yes" if item.mended else "no", plain(item.lost)) for item in damages
    ]
    call.screen.show(table_of(("name", "what", "mended", "lost"), rows, prose="lost"))
