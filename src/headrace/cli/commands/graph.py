"""strata, components, graph, explain-strata, groups: dependencies. No Spark is started."""

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
        found = project.stratum_status()
    call.screen.document({"strata": [stratum_document(one) for one in found]})
    if not found:
        call.screen.note(NONE_YET)
        return
    call.screen.show(strata_table(found))
    for one in found:
        for edge in one.non_monotone_edges:
            call.screen.show(plain(str(edge)))


def components(call: Invocation) -> None:
    """Show the components: stream tables that read each other, or themselves."""
    with call.project() as project:
        found = project.scc_status()
    call.screen.document({"components": [component_document(one) for one in found]})
    if not found:
        call.screen.note("No stream tables read each other.")
        return
    call.screen.show(components_table(found))


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
    """Show the strata of stream tables and of all they rest on, also before they are created.

    A cycle that cannot be made is told with its whole path and the operator; nothing is made.
    """
    if (file is None) == (not names):
        raise UserError(
            "invalid-option",
            "explain-strata takes either names or a file",
            hint="Name stream tables, or give statements with --file.",
        )
    queries = {} if file is None else _queries(file)
    with call.project() as project:
        if names:
            asked = [sql_name(table.name) for table in named(project, names)]
            explained = project.explain_strata(asked)
        else:
            explained = project.explain_strata(queries)
    call.screen.document(_document(explained))
    for line in str(explained).splitlines():
        call.screen.show(plain(line))


def _queries(file: Path) -> dict[str, str]:
    """The queries of the tables that a file's statements would make or alter."""
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
                    "explain-strata takes statements with a query",
                    detail=f"At {statement.place}.",
                )
            queries[statement.name] = query
    return queries


def _document(explained: StrataExplanation) -> dict[str, object]:
    return {
        "strata": [stratum_document(one) for one in explained.strata],
        "components": [component_document(one) for one in explained.components],
        "edges": [edge_document(one) for one in explained.edges],
        "unstratifiable": [unstratifiable_document(one) for one in explained.unstratifiable],
    }


def groups(call: Invocation) -> None:
    """Show the groups: stream tables that belong together, and if they are published as one."""
    with call.project() as project:
        found = project.diamond_groups()
    call.screen.document({"groups": [asdict(one) for one in found]})
    if not found:
        call.screen.note("Every stream table is published by itself.")
        return
    call.screen.show(groups_table(found))
