"""Doing one thing to several stream tables: one that fails does not stop its siblings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.cli.call import Invocation
from headrace.cli.failures import error_document, tell
from headrace.cli.naming import sql_name
from headrace.errors import HeadraceError, Unavailable

if TYPE_CHECKING:
    from headrace.observe.table_status import TableStatus

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
    """Act on every table by its name in SQL. Where something outside is missing, nobody goes on."""
    done: list[tuple[str, Result]] = []
    failed: list[tuple[str, HeadraceError]] = []
    for table in tables:
        try:
            with call.doing(f"{doing} {table.name}"):
                done.append((table.name, act(sql_name(table.name))))
        except HeadraceError as error:
            failed.append((table.name, error))
            tell(call.screen, error_document(error))
            if isinstance(error, Unavailable):
                break
    return done, Failed(tuple(failed))
