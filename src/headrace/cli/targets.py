"""Select the stream tables that a command line names, and act on each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.cli.call import Invocation
from headrace.cli.failures import error_document, show_error
from headrace.errors import HeadraceError, Unavailable, UserError
from headrace.lifecycle.names import parse_name

if TYPE_CHECKING:
    from headrace.api import Headrace
    from headrace.observe.table_status import TableStatus


def chosen(
    project: Headrace, names: Sequence[str] | None, *, everything: bool
) -> tuple[TableStatus, ...]:
    """Return the tables with these names, or all of them.

    Naming none without `everything` is an error.
    """
    if bool(names) == everything:
        raise UserError(
            "invalid-option",
            "names and --all cannot be used together" if names else "no stream table given",
            hint="Name stream tables, or use --all.",
        )
    tables = project.status()
    return tables if everything else named(project, names or ())


def named(project: Headrace, names: Sequence[str]) -> tuple[TableStatus, ...]:
    """Return the tables with these names, each once, in the order in which they were given."""
    tables = project.status()
    matches = (find(tables, name) or _unknown(project, name) for name in names)
    return tuple({table.name: table for table in matches}.values())


def relation_names(project: Headrace) -> dict[str, str]:
    """Return the names of stream tables, by the relations that lines of the history have."""
    return {table.relation: table.name for table in project.status()}


def find(tables: Sequence[TableStatus], name: str) -> TableStatus | None:
    """Return the table of that name: `schema.name`, or a bare name, preferring public's."""
    schema, bare = parse_name(name, "public")
    is_qualified = parse_name(name, "another")[0] == schema
    by_name = {table.name: table for table in tables}
    exact = by_name.get(f"{schema}.{bare}")
    if exact is not None or is_qualified:
        return exact
    alike = [table for table in tables if table.name.split(".", 1)[1] == bare]
    return alike[0] if len(alike) == 1 else None


def sql_name(display_name: str) -> str:
    """Return a displayed `schema.name` as `parse_name` reads it, quoted where needed."""
    return ".".join(_quoted(part) for part in display_name.split(".", 1))


def _quoted(part: str) -> str:
    try:
        plainly = parse_name(part, "public") == ("public", part)
    except UserError:
        plainly = False
    return part if plainly else '"' + part.replace('"', '""') + '"'


def _unknown(project: Headrace, name: str) -> TableStatus:
    """Return the library's own complaint about a name that no stream table has."""
    project.history(name, 1)
    raise UserError("unknown-stream-table", f"stream table {name} does not exist")


Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """The errors, by table, in the order in which they came; the first gives the exit code."""

    errors: tuple[tuple[str, HeadraceError], ...]

    @property
    def exit_code(self) -> int:
        return self.errors[0][1].exit_code if self.errors else 0

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [{"table": name, **error_document(error)} for name, error in self.errors]


def for_each(
    call: Invocation, doing: str, tables: Sequence[TableStatus], act: Callable[[str], Result]
) -> tuple[list[tuple[str, Result]], Failed]:
    """Act on every table by its name in SQL; stop if something outside is missing."""
    done: list[tuple[str, Result]] = []
    failed: list[tuple[str, HeadraceError]] = []
    for table in tables:
        try:
            with call.doing(f"{doing} {table.name}"):
                done.append((table.name, act(sql_name(table.name))))
        except HeadraceError as error:
            failed.append((table.name, error))
            show_error(call.screen, error_document(error))
            if isinstance(error, Unavailable):
                break
    return done, Failed(tuple(failed))
