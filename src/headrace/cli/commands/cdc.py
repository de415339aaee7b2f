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
    typer.Option(
        "--print-sql",
        help="Print the SQL that a DBA has to run to allow capture.",
    ),
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

    behind is the size of a change buffer, or of the WAL that the replication slot retains; cut is
    how long ago changes were taken in. The WAL has the keys of old rows, or, where a table has
    REPLICA IDENTITY FULL, whole old rows, which every UPDATE and DELETE then writes.
    """
    if tables and not print_sql:
        raise UserError("invalid-option", "tables can be named only with --print-sql")
    if print_sql and convert:
        raise UserError("invalid-option", "--print-sql and --convert cannot be used together")
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
        sources = project.check_cdc_health()
    call.screen.document({"sources": [source_document(item) for item in sources]})
    if not sources:
        call.screen.note("No table is captured yet; `headrace create` makes a stream table.")
        return
    call.screen.show(sources_table(sources))
    for item in sources:
        for line in remarks(item):
            call.screen.show(plain(line))


def source_document(source: SourceHealth) -> dict[str, Any]:
    """Return a source as a JSON document; the lag is in seconds."""
    return {**asdict(source), "lag": None if source.lag is None else source.lag.total_seconds()}


def sources_table(sources: tuple[SourceHealth, ...]) -> Table:
    rows = (
        (
            source.source,
            source.status,
            source.mode.lower()
            if source.identity is None
            else f"{source.mode.lower()} ({source.identity})",
            source.requested_mode,
            "-" if source.lag_bytes is None else size(source.lag_bytes),
            "-" if source.lag is None else roughly(source.lag),
            source.level,
        )
        for source in sources
    )
    headings = ("source", "status", "mode", "request", "behind", "cut", "level")
    return table_of(headings, rows, right=("behind", "cut"))


def remarks(source: SourceHealth) -> list[str]:
    """Return why a source is not fine, and why the requested capture mode is not in use."""
    lines = [] if source.alert is None else [f"{source.source}: {source.level}: {source.alert}"]
    if source.mode_reason is not None and source.mode_reason not in (source.alert or ""):
        lines.append(f"{source.source}: not captured from WAL: {source.mode_reason}")
    return lines


def size(bytes_: int) -> str:
    """Return a number of bytes by its largest unit: 812 B, 16 kB, 3 MB, 2 GB."""
    units = (("GB", 2**30), ("MB", 2**20), ("kB", 2**10))
    return next(
        (f"{bytes_ // unit:,} {name}" for name, unit in units if bytes_ >= unit), f"{bytes_:,} B"
    )
