"""cdc: how the changes of sources are captured. No Spark is started."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.call import Invocation
from headrace.cli.tables import table_of
from headrace.cli.words import plain, roughly
from headrace.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from headrace.observe.cdc_status import SourceHealth

Tables = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TABLE]...", help="Tables, as a query names them; all sources if none is given."
    ),
]
PrintSql = Annotated[
    bool,
    typer.Option("--print-sql", help="Print what a DBA has to run for the tables to be captured."),
]
Convert = Annotated[
    bool,
    typer.Option(
        "--convert", help="Bring existing change buffers to max_buffer_mb and unlogged_buffers now."
    ),
]


def cdc(
    call: Invocation, tables: Tables = None, print_sql: PrintSql = False, convert: Convert = False
) -> None:
    """Show how the changes of every source are captured, and what is wrong.

    behind is the size of a change buffer, or what the replication slot holds back of the server's
    log; cut is how long ago changes were taken in. The log has the keys of old rows, or, where a
    table has REPLICA IDENTITY FULL, all of them, which every UPDATE and DELETE then writes.
    """
    if tables and not print_sql:
        raise UserError("invalid-option", "tables are named with --print-sql only")
    if print_sql and convert:
        raise UserError("invalid-option", "--print-sql and --convert exclude each other")
    with call.project() as project:
        if convert:
            converted = project.convert_buffers()
            call.screen.document({"converted": list(converted)})
            call.screen.show(plain(f"converted: {', '.join(converted) or 'nothing to convert'}"))
            return
        if print_sql:
            text = project.cdc_sql(*tables or ())
            call.screen.document({"sql": text})
            call.screen.command(text.rstrip("\n"))
            return
        found = project.check_cdc_health()
    call.screen.document({"sources": [source_document(one) for one in found]})
    if not found:
        call.screen.note("No table is captured yet; `headrace create` makes a stream table.")
        return
    call.screen.show(sources_table(found))
    for one in found:
        for line in remarks(one):
            call.screen.show(plain(line))


def source_document(one: SourceHealth) -> dict[str, Any]:
    """A source as a JSON document; the lag is in seconds."""
    return {**asdict(one), "lag": None if one.lag is None else one.lag.total_seconds()}


def sources_table(sources: tuple[SourceHealth, ...]) -> Table:
    rows = (
        (
            one.source,
            one.status,
            one.mode.lower() if one.identity is None else f"{one.mode.lower()} ({one.identity})",
            one.wished,
            "-" if one.lag_bytes is None else size(one.lag_bytes),
            "-" if one.lag is None else roughly(one.lag),
            one.level,
        )
        for one in sources
    )
    headings = ("source", "status", "mode", "asked", "behind", "cut", "level")
    return table_of(headings, rows, right=("behind", "cut"))


def remarks(one: SourceHealth) -> list[str]:
    """Why a source is not fine, and why it is not captured as was asked."""
    lines = [] if one.alert is None else [f"{one.source}: {one.level}: {one.alert}"]
    if one.mode_reason is not None and one.mode_reason not in (one.alert or ""):
        lines.append(f"{one.source}: not from the log: {one.mode_reason}")
    return lines


def size(bytes_: int) -> str:
    """A number of bytes by its largest unit: 812 B, 16 kB, 3 MB, 2 GB."""
    units = (("GB", 2**30), ("MB", 2**20), ("kB", 2**10))
    return next(
        (f"{bytes_ // unit:,} {name}" for name, unit in units if bytes_ >= unit), f"{bytes_:,} B"
    )
