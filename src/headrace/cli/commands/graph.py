"""strata, cycles, graph, explain-strata, groups: dependencies. No Spark is started."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.commands.run import naming, statements_text
from headrace.cli.commands.show import NONE_YET
from headrace.cli.documents import (
    component_document,
    edge_document,
    stratum_document,
    unstratifiable_document,
)
from headrace.cli.tables import components_table, groups_table, strata_table
from headrace.cli.targets import named, sql_name
from headrace.cli.words import plain
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.observe.strata_status import StrataExplanation


def strata(call: Invocation) -> None:
    """Show the strata: layers of stream tables, each on the finished ones below it."""
    with call.project() as project:
        statuses = project.stratum_status()
    call.screen.document({"strata": [stratum_document(item) for item in statuses]})
    if not statuses:
        call.screen.note(NONE_YET)
        return
    call.screen.show(strata_table(statuses))
    for item in statuses:
        for edge in item.non_monotone_edges:
            call.screen.show(plain(str(edge)))


def cycles(call: Invocation) -> None:
    """Show the cycles: stream tables that read each other, or themselves."""
    with call.project() as project:
        statuses = project.scc_status()
    call.screen.document({"components": [component_document(item) for item in statuses]})
    if not statuses:
        call.screen.note("No stream tables read each other.")
        return
    call.screen.show(components_table(statuses))


def graph(
    call: Invocation,
    format_: Annotated[str, typer.Option("--format", help="text, mermaid or dot.")] = "text",
) -> None:
    """Draw sources, stream tables, components and strata; dashed edges are not monotone."""
    with call.project() as project:
        drawn = project.graph(format_)
    call.screen.document({"format": format_, "graph": drawn})
    for line in drawn.splitlines():
        call.screen.command(plain(line))


def explain_strata(
    call: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Stream tables that exist."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            help="A file of CREATE STREAM TABLE statements; - is the standard input.",
            allow_dash=True,
        ),
    ] = None,
) -> None:
    """Show the strata of stream tables and of all they read, also before they are created.

    A cycle that cannot be created is shown with its path and operator; nothing is created.
    """
    if (file is None) == (not names):
        raise UserError(
            "invalid-option",
            "explain-strata requires either names or a file",
            hint="Name stream tables, or give statements with --file.",
        )
    queries = {} if file is None else _queries(file)
    with call.project() as project:
        if names:
            quoted = [sql_name(table.name) for table in named(project, names)]
            explained = project.explain_strata(quoted)
        else:
            explained = project.explain_strata(queries)
    call.screen.document(_document(explained))
    for line in str(explained).splitlines():
        call.screen.show(plain(line))


def _queries(file: Path) -> dict[str, str]:
    """Return the queries of the tables that a file's statements would make or alter."""
    from headrace.statements import AlterStatement, CreateStatement, parse

    queries: dict[str, str] = {}
    with naming(file):
        for statement in parse(statements_text(file)):
            query = (
                statement.query if isinstance(statement, CreateStatement | AlterStatement) else None
            )
            if query is None:
                raise UserError(
                    "invalid-option",
                    "explain-strata accepts only statements with a query",
                    detail=f"At {statement.place}.",
                )
            queries[statement.name] = query
    return queries


def _document(explained: StrataExplanation) -> dict[str, object]:
    return {
        "strata": [stratum_document(edge) for edge in explained.strata],
        "components": [component_document(edge) for edge in explained.components],
        "edges": [edge_document(edge) for edge in explained.edges],
        "unstratifiable": [unstratifiable_document(edge) for edge in explained.unstratifiable],
    }


def groups(call: Invocation) -> None:
    """Show the groups: stream tables that belong together, and if they are published as one."""
    with call.project() as project:
        members = project.diamond_groups()
    call.screen.document({"groups": [asdict(item) for item in members]})
    if not members:
        call.screen.note("Every stream table is published by itself.")
        return
    call.screen.show(groups_table(members))
