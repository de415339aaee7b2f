"""verify: prove that stream tables are what their queries say."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.commands.show import NONE_YET
from headrace.cli.documents import receipt_document
from headrace.cli.exit_codes import DONE, NOT_EQUAL
from headrace.cli.tables import differences, listed_receipts, verified
from headrace.cli.targets import chosen, for_each, named, sql_name
from headrace.cli.words import counted
from headrace.errors import UserError
from headrace.schedule.schedule import Every, parse_schedule
from headrace.verify.oracle import Oracle

# How many receipts are listed without --limit.
LISTED = 20

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Stream tables.")]
All = Annotated[bool, typer.Option("--all", help="All stream tables.")]
Source = Annotated[
    bool, typer.Option("--source", help="Also compare what was captured with the live tables.")
]


OracleOption = Annotated[
    Oracle,
    typer.Option(
        "--oracle",
        help="What recomputes: Spark, or PostgreSQL in the snapshot of a cut to which the table"
        " is refreshed.",
    ),
]


SampleOption = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="SAMPLE",
        help="Compare a part: 1%, 1% by column (the next one each time), or column=value,value.",
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="AGE",
        help="Skip tables that were found equal within this time, compared in the same way:"
        " 30m, 1h, 2d.",
    ),
]


def verify(
    call: Invocation,
    names: Names = None,
    all_: All = False,
    source: Source = False,
    oracle: OracleOption = Oracle.SPARK,
    sample: SampleOption = None,
    resume: Resume = None,
) -> int:
    """Recompute stream tables and compare them row by row; the exit code is 1 if one differs."""
    # These load much, which `headrace --help` has no need of.
    from headrace.publish.partition_scheme import scheme_of
    from headrace.verify.resume import is_verified
    from headrace.verify.sample import SampleRequest

    since = None if resume is None else datetime.now(UTC) - _age(resume)
    part = None if sample is None else SampleRequest.of(sample)
    with call.project() as project:
        tables = chosen(project, names, everything=all_)
        is_empty = not tables
        if since is not None:
            receipts_by_name = {
                table.name: project.receipts(sql_name(table.name), current=True) for table in tables
            }
            tables = tuple(
                table
                for table in tables
                if not is_verified(
                    receipts_by_name[table.name],
                    since,
                    oracle,
                    part,
                    source=source,
                    scheme=scheme_of(table.options),
                )
            )
        done, failed = for_each(
            call,
            "verifying",
            tables,
            lambda name: project.verify(name, source=source, oracle=oracle, sample=sample),
        )
    equal = not failed.errors and all(receipt.equal for _, receipt in done)
    call.screen.document(
        {
            "equal": None if is_empty else equal,
            "receipts": [receipt_document(*named_receipt) for named_receipt in done],
            "errors": failed.documents,
        }
    )
    if is_empty:
        call.screen.note(NONE_YET)
    elif not tables:
        call.screen.note("All tables have been verified since then.")
    if done:
        call.screen.show(verified(done))
    for name, receipt in done:
        call.screen.show(*differences(name, receipt))
    if failed.errors:
        return failed.exit_code
    return DONE if all(receipt.equal for _, receipt in done) else NOT_EQUAL


def _age(text: str) -> timedelta:
    """Return a duration as a schedule writes it."""
    schedule = parse_schedule(text, "UTC")
    if not isinstance(schedule, Every):
        raise UserError(
            "invalid-option",
            f"invalid age {text!r}",
            hint="Valid ages are 30m, 1h and 2d, for example.",
        )
    return schedule.period


def receipts(
    call: Invocation,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A stream table; all if not given.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            help="At most this many; if not given, 20 are listed, and all are exported.",
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Write them to a file, a JSON text a line."),
    ] = None,
) -> None:
    """List the receipts of `verify`, newest first, or export them."""
    if limit is None and export is None:
        limit = LISTED
    with call.project() as project:
        tables = named(project, [name]) if name is not None else project.status()
        named_receipts = [
            (table.name, receipt)
            for table in tables
            for receipt in project.receipts(sql_name(table.name), limit)
        ]
    named_receipts.sort(key=lambda named_receipt: named_receipt[1].verified_at, reverse=True)
    documents = [receipt_document(*named_receipt) for named_receipt in named_receipts[:limit]]
    if export is not None:
        lines = (f"{json.dumps(document, ensure_ascii=False)}\n" for document in documents)
        try:
            export.write_text("".join(lines), encoding="utf-8")
        except OSError as error:
            raise UserError(
                "invalid-option", f"{export} cannot be written", detail=str(error)
            ) from None
        call.screen.note(f"{counted(len(documents), 'receipt')} written to {export}")
        return
    call.screen.document({"receipts": documents})
    if not named_receipts:
        call.screen.note("No table has been verified yet.")
        return
    call.screen.show(listed_receipts(named_receipts[:limit]))
