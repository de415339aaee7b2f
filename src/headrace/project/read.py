"""Read the stream tables that a folder of *.sql files defines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.boundary.arguments import check_text
from headrace.errors import HeadraceError, UserError
from headrace.lifecycle.cycle_members import Name
from headrace.lifecycle.names import parse_name, quoted_name
from headrace.lifecycle.planned_table import TableRequest
from headrace.statements import CreateStatement, Statement, parse


@dataclass(frozen=True)
class DefinedTable:
    """A stream table as a folder defines it: the request, its file, and its first line.

    `file` is relative to the folder.
    """

    name: Name
    request: TableRequest
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}"


def read_folder(folder: Path, default_schema: str) -> tuple[DefinedTable, ...]:
    """Return all tables that the files in the folder and below it create, by name.

    Names that begin with a dot are passed over. A table that is created twice, a statement other
    than CREATE STREAM TABLE and a folder without files are errors.
    """
    definitions: dict[Name, DefinedTable] = {}
    files = tuple(_files(folder))
    if not files:
        raise UserError(
            "invalid-option",
            f"there are no *.sql files in {folder}",
            hint="For no stream tables at all, add an empty *.sql file.",
        )
    for file in files:
        relative = file.relative_to(folder).as_posix()
        for definition in _read(file, relative, default_schema):
            if definition.name in definitions:
                raise _twice(definitions[definition.name], definition)
            definitions[definition.name] = definition
    return tuple(definitions[name] for name in sorted(definitions))


def _files(folder: Path) -> Iterator[Path]:
    """Return the *.sql files, deep down too; folders behind links are not entered."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise UserError("invalid-option", f"could not read {folder}", detail=str(error)) from None
    for path in paths:
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if not path.is_symlink():
                yield from _files(path)
        elif path.suffix.lower() == ".sql":
            yield path


def _read(file: Path, relative: str, default_schema: str) -> list[DefinedTable]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("invalid-option", f"could not read {file}", detail=str(error)) from None
    with _naming(f"In {relative}."):
        check_text(text)
        return [_wanted(statement, relative, default_schema) for statement in parse(text)]


def _wanted(statement: Statement, file: str, default_schema: str) -> DefinedTable:
    with _naming(f"At {statement.place}."):
        if not isinstance(statement, CreateStatement):
            raise UserError(
                "invalid-option",
                "a project folder may contain only CREATE STREAM TABLE statements",
                hint="Run other statements with: headrace run FILE",
            )
        name = parse_name(statement.name, default_schema)
        request = TableRequest.of(quoted_name(*name), statement.query, statement.options)
    return DefinedTable(name, request, file, statement.place.line)


def _twice(first: DefinedTable, second: DefinedTable) -> UserError:
    return UserError(
        "name-exists",
        f"stream table {'.'.join(first.name)} is defined twice",
        detail=f"In {first.place}, and in {second.place}.",
    )


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Add the place of the failure to its detail."""
    try:
        yield
    except HeadraceError as error:
        error.detail = " ".join(part for part in (error.detail, where) if part)
        raise
