"""attach, detach, databases: where sources are. No Spark is started."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.call import Call
from headrace.cli.documents import database_document
from headrace.cli.tables import databases_table, failing_databases
from headrace.cli.words import plain

Alias = Annotated[
    str,
    typer.Argument(metavar="ALIAS", help="What its tables are named with: alias.schema.table."),
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
    typer.Option("--setup", help="The same for the role that may create triggers there."),
]
Share = Annotated[
    int, typer.Option("--share", min=1, help="Its weight when refreshes wait for workers.")
]


def attach(
    call: Call, alias: Alias, address: Address, setup: SetupAddress = None, share: Share = 1
) -> None:
    """Attach a PostgreSQL database, so that queries can read its tables too."""
    with call.project(changes=True) as project:
        project.attach(alias, address, setup_dsn=setup, share=share)
    call.screen.document({"attached": alias})
    call.screen.note(f"Attached {alias}: name its tables {alias}.schema.table in queries.")


def detach(call: Call, alias: Alias) -> None:
    """Let go of an attached database that no stream table reads any more."""
    with call.project() as project:
        project.detach(alias)
    call.screen.document({"detached": alias})
    call.screen.note(f"Detached {alias}.")


def databases(call: Call) -> None:
    """Show the databases whose tables can be read, and what is captured of them."""
    with call.project() as project:
        found = project.databases()
    call.screen.document({"databases": [database_document(one) for one in found]})
    call.screen.show(databases_table(found), *map(plain, failing_databases(found)))
