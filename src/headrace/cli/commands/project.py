"""init, settings, set: the project itself. No Spark is started."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headrace.cli.call import Invocation
from headrace.cli.documents import setting_document
from headrace.cli.project_file import check_project_file, write_project_file
from headrace.cli.tables import set_values
from headrace.errors import UserError


def init(call: Invocation) -> None:
    """Make a project: a home folder, a catalog, and an embedded PostgreSQL if no --dsn is given.

    Options given here are kept in headrace.toml in the home folder. Repeating it does no harm.
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
    shown = {**facts, "postgresql": f"embedded, {address}" if where.dsn is None else address}
    for name in ("home", "postgresql", "store", "spark"):
        call.screen.show(f"{name:<12}{shown[name]}")


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
            "set takes either a value or --default",
            hint=f"Such as: headrace set {name} VALUE.",
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
