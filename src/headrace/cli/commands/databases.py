"""attach, alter-database, detach, databases: where sources are. No Spark is started."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.documents import database_document
from headrace.cli.tables import databases_table, failing_databases
from headrace.cli.words import plain
from headrace.errors import UserError

Alias = Annotated[
    str,
    typer.Argument(metavar="ALIAS", help="Prefix of its tables in queries: alias.schema.table."),
]
Address = Annotated[
    str,
    typer.Argument(
        metavar="DSN",
        help="A connection string without a password, or env:NAME or file:PATH, where one is kept.",
    ),
]
SetupAddress = Annotated[
    str | None,
    typer.Option("--setup", help="Connection string of a role that may create triggers there."),
]
Share = Annotated[
    int,
    typer.Option("--share", min=1, help="Weight of the database when refreshes wait for workers."),
]

Quota = Annotated[
    int | None,
    typer.Option(
        "--quota", min=1, help="Workers that the database is entitled to, whatever its share."
    ),
]
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority", help="Databases of higher priority come first when workers are scarce."
    ),
]


def attach(
    call: Invocation,
    alias: Alias,
    address: Address,
    setup: SetupAddress = None,
    share: Share = 1,
    quota: Quota = None,
    priority: Priority = None,
) -> None:
    """Attach a PostgreSQL database, so that queries can read its tables too."""
    with call.project(changes=True) as project:
        project.attach(
            alias, address, setup_dsn=setup, share=share, quota=quota, priority=priority or 0
        )
    call.screen.document({"attached": alias})
    call.screen.note(f"Attached {alias}: name its tables {alias}.schema.table in queries.")


def alter_database(
    call: Invocation,
    alias: Annotated[str, typer.Argument(metavar="ALIAS", help="An attached database, or home.")],
    share: Annotated[
        int | None,
        typer.Option(
            "--share", min=1, help="Weight of the database when refreshes wait for workers."
        ),
    ] = None,
    quota: Quota = None,
    no_quota: Annotated[
        bool, typer.Option("--no-quota", help="Remove the quota: only the share counts.")
    ] = False,
    priority: Priority = None,
) -> None:
    """Change what a database may claim of a daemon's workers."""
    from headrace.lifecycle.alter import KEEP

    if no_quota and quota is not None:
        raise UserError("invalid-option", "--quota and --no-quota cannot be used together")
    with call.project() as project:
        project.alter_database(
            alias,
            share=KEEP if share is None else share,
            quota=None if no_quota else KEEP if quota is None else quota,
            priority=KEEP if priority is None else priority,
        )
    call.screen.document({"altered": alias})
    call.screen.note(f"Altered {alias}.")


def detach(call: Invocation, alias: Alias) -> None:
    """Detach a database that no stream table reads."""
    with call.project() as project:
        project.detach(alias)
    call.screen.document({"detached": alias})
    call.screen.note(f"Detached {alias}.")


def databases(call: Invocation) -> None:
    """Show the databases whose tables can be read, and what is captured of them."""
    with call.project() as project:
        statuses = project.databases()
    call.screen.document({"databases": [database_document(item) for item in statuses]})
    call.screen.show(databases_table(statuses), *map(plain, failing_databases(statuses)))
