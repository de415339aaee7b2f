"""Which stream tables a command line means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.errors import UserError
from headrace.lifecycle.names import parse_name

if TYPE_CHECKING:
    from headrace.api import Headrace
    from headrace.observe.table_status import TableStatus


def chosen(
    project: Headrace, names: Sequence[str] | None, *, everything: bool
) -> tuple[TableStatus, ...]:
    """The tables with these names, or all of them; naming none without `everything` is an error."""
    if bool(names) == everything:
        raise UserError(
            "invalid-option",
            "names and --all exclude each other" if names else "no stream table is named",
            hint="Name some, or say --all.",
        )
    tables = project.status()
    return tables if everything else named(project, names or ())


def named(project: Headrace, names: Sequence[str]) -> tuple[TableStatus, ...]:
    """The tables with these names, each once, in the order in which they were given."""
    tables = project.status()
    found = (find(tables, name) or _unknown(project, name) for name in names)
    return tuple({table.name: table for table in found}.values())


def relation_names(project: Headrace) -> dict[str, str]:
    """The names of stream tables, by the relations that lines of the history have."""
    return {table.relation: table.name for table in project.status()}


def find(tables: Sequence[TableStatus], name: str) -> TableStatus | None:
    """The table that a name means: `schema.name`, or a bare name, of which public's comes first."""
    schema, bare = parse_name(name, "public")
    given = parse_name(name, "another")[0] == schema
    by_name = {table.name: table for table in tables}
    exact = by_name.get(f"{schema}.{bare}")
    if exact is not None or given:
        return exact
    alike = [table for table in tables if table.name.split(".", 1)[1] == bare]
    return alike[0] if len(alike) == 1 else None


def sql_name(shown: str) -> str:
    """A shown `schema.name` as `parse_name` reads it: parts that need them get double quotes."""
    return ".".join(_quoted(part) for part in shown.split(".", 1))


def _quoted(part: str) -> str:
    try:
        plainly = parse_name(part, "public") == ("public", part)
    except UserError:
        plainly = False
    return part if plainly else '"' + part.replace('"', '""') + '"'


def _unknown(project: Headrace, name: str) -> TableStatus:
    """The library's own complaint about a name that no stream table has."""
    project.history(name, 1)
    raise UserError("unknown-stream-table", f"no stream table is called {name}")
