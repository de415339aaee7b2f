"""verify: prove that stream tables are what their queries say."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.call import Call
from headrace.cli.commands.each import for_each
from headrace.cli.documents import receipt_document
from headrace.cli.exits import DONE, NOT_EQUAL
from headrace.cli.naming import chosen
from headrace.cli.tables import differences, verified
from headrace.verify.oracle import Oracle

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Stream tables.")]
All = Annotated[bool, typer.Option("--all", help="All stream tables.")]
Source = Annotated[
    bool, typer.Option("--source", help="Also compare what was captured with the live tables.")
]


OracleOption = Annotated[
    Oracle,
    typer.Option(
        "--oracle",
        help="Who recomputes: Spark, or PostgreSQL in the snapshot of a cut to which the table"
        " is refreshed.",
    ),
]


def verify(
    call: Call,
    names: Names = None,
    all_: All = False,
    source: Source = False,
    oracle: OracleOption = Oracle.SPARK,
) -> int:
    """Recompute stream tables and compare them row by row; the exit code is 1 if one differs."""
    with call.project() as project:
        tables = chosen(project, names, everything=all_)
        done, failed = for_each(
            call,
            "verifying",
            tables,
            lambda name: project.verify(name, source=source, oracle=oracle),
        )
    call.screen.document(
        {
            "equal": not failed.errors and all(receipt.equal for _, receipt in done),
            "receipts": [receipt_document(*one) for one in done],
            "errors": failed.documents,
        }
    )
    if done:
        call.screen.show(verified(done))
    for name, receipt in done:
        call.screen.show(*differences(name, receipt))
    if failed.errors:
        return failed.exit_code
    return DONE if all(receipt.equal for _, receipt in done) else NOT_EQUAL
