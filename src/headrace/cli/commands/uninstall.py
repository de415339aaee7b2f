"""uninstall: everything of Headrace goes, and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.commands.change import ask
from headrace.cli.words import counted


def uninstall(
    call: Invocation,
    print_sql: Annotated[
        bool, typer.Option("--print-sql", help="Print the SQL that it would run, and do nothing.")
    ] = False,
    keep_tables: Annotated[
        bool, typer.Option("--keep-tables", help="Leave stream tables as ordinary tables.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove triggers, buffers, schemas, stream tables and logs of Headrace, and nothing else."""
    with call.project() as project:
        statements = project.uninstall_sql(keep_tables=keep_tables)
        tables = [table.name for table in project.status()]
        if not print_sql:
            if not yes:
                going = "" if keep_tables else f" with {counted(len(tables), 'stream table')}"
                ask(f"Remove Headrace{going} from the database?", "uninstalling")
            with call.doing("uninstalling"):
                project.uninstall(keep_tables=keep_tables)
    document = {"sql": statements, "stream_tables": tables, "kept": keep_tables}
    call.screen.document({**document, "done": not print_sql})
    call.screen.command(statements.rstrip("\n") if print_sql else "Headrace is uninstalled")
