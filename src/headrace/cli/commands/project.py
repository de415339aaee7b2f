"""init, settings, set, uninstall, and headrace.toml: where the project's things are."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.call import GlobalOptions, Invocation
from headrace.cli.commands.change import ask
from headrace.cli.documents import setting_document
from headrace.cli.tables import set_values
from headrace.cli.words import counted
from headrace.errors import Unavailable, UserError
from headrace.files.private import home_folder

NAME = "headrace.toml"
KEPT = ("dsn", "setup_dsn", "spark", "store")


def check_project_file(home: Path, options: GlobalOptions) -> tuple[dict[str, str], bool]:
    """Return the values for the home folder's file, and whether it exists; write nothing.

    Raise UserError if the file has other values, or if a password would be written.
    """
    file = home / NAME
    values = {name: value for name in KEPT if (value := getattr(options, name)) is not None}
    present = _read(file)
    for name, value in values.items():
        if present is not None and present.get(name) != value:
            raise UserError(
                "invalid-option",
                f"{file} has another value for {name}",
                hint="Edit the file, or choose another home folder.",
            )
        if name in ("dsn", "setup_dsn"):
            _refuse_password(name, value)
    return values, present is not None


def write_project_file(home: Path, options: GlobalOptions) -> Path | None:
    """Write the given locations to the home folder's file; return the file, None without one.

    An existing file with the same values is left as it is; one with other values is not
    overwritten. Passwords are not written.
    """
    file = home / NAME
    values, present = check_project_file(home, options)
    if present or not values:
        return file if present else None
    try:
        home_folder(home)
        file.write_text(project_file(values), encoding="utf-8")
    except OSError as error:
        raise Unavailable(
            "store-unreachable", f"could not write {file}", detail=str(error)
        ) from None
    return file


def project_file(values: dict[str, str]) -> str:
    """Return the text of the file. A JSON string is a TOML string, too."""
    lines = [
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items()
    ]
    return "# Where this project's things are; see docs/settings.md.\n" + "".join(lines)


def _read(file: Path) -> dict[str, str] | None:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(
            "invalid-option",
            f"could not read {file}",
            detail=str(error),
            hint="Fix or remove the file.",
        ) from None


def _refuse_password(name: str, value: str) -> None:
    from headrace.source.conninfo import parse

    if value.startswith(("env:", "file:")):
        return
    if {"password", "sslpassword"} & parse(value).keys():
        option = "--" + name.replace("_", "-")
        raise UserError(
            "invalid-option",
            f"connection string of {option} contains a password, which is not written to a file",
            hint=f"Keep the connection string elsewhere: {option} env:NAME or {option} file:PATH.",
        )


def init(call: Invocation) -> None:
    """Create a project: a home folder, a catalog, and an embedded PostgreSQL if no --dsn is given.

    Options given here are kept in headrace.toml in the home folder. Repeating init does no harm.
    """
    from headrace.settings import places
    from headrace.source.conninfo import place

    check_project_file(call.home, call.given)
    with call.project(make=True) as project:
        address = place(project.dsn)
        tables = len(project.status())
    file = write_project_file(call.home, call.given)
    where = places(**call.given.places)
    facts = {
        "home": str(call.home),
        "postgresql": address,
        "embedded": where.dsn is None,
        "store": where.store or str(call.home / "store"),
        "spark": where.spark or "local",
        "settings_file": None if file is None else str(file),
        "stream_tables": tables,
    }
    call.screen.document(facts)
    lines = {**facts, "postgresql": f"embedded, {address}" if where.dsn is None else address}
    for name in ("home", "postgresql", "store", "spark"):
        call.screen.show(f"{name:<12}{lines[name]}")


def list_settings(call: Invocation) -> None:
    """List the settings of the project."""
    with call.project() as project:
        rows = _rows(dict(project.settings()))
    call.screen.document({"settings": rows})
    call.screen.show(set_values(rows))


def change_setting(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A setting.")],
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="Its new value.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Back to the default.")] = False,
) -> None:
    """Change a setting of the project."""
    from headrace.settings import Settings

    if (value is None) != default:
        raise UserError(
            "invalid-option",
            "set requires either a value or --default",
            hint=f"headrace set {name} VALUE",
        )
    typed = None if value is None else getattr(Settings.of({name: value}), name)
    with call.project(changes=True) as project:
        project.set(name, typed)
        row = next(row for row in _rows(dict(project.settings())) if row["name"] == name)
    call.screen.document(row)
    call.screen.show(f"{name} is {row['value']}")


def _rows(values: dict[str, Any]) -> list[dict[str, Any]]:
    from headrace.settings import Settings

    return [
        setting_document(name, values[name], field.default, field.description)
        for name, field in Settings.model_fields.items()
    ]


def uninstall(
    call: Invocation,
    print_sql: Annotated[
        bool, typer.Option("--print-sql", help="Print the SQL that would run, and do nothing.")
    ] = False,
    keep_tables: Annotated[
        bool, typer.Option("--keep-tables", help="Leave stream tables as ordinary tables.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Remove triggers, buffers, schemas, stream tables and logs of Headrace, and nothing else."""
    with call.project() as project:
        statements = project.uninstall_sql(keep_tables=keep_tables)
        tables = [table.name for table in project.status()]
        if not print_sql:
            if not yes:
                going = "" if keep_tables else f" with {counted(len(tables), 'stream table')}"
                ask(f"Remove Headrace{going} from the database?", "uninstalling")
            with call.doing("uninstalling"):
                project.uninstall(keep_tables=keep_tables)
    document = {"sql": statements, "stream_tables": tables, "kept": keep_tables}
    call.screen.document({**document, "done": not print_sql})
    call.screen.command(statements.rstrip("\n") if print_sql else "Headrace is uninstalled")
