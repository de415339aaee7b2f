"""headrace.toml: the places of a project, so that later commands need only the home folder."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from headrace.cli.call import GlobalOptions
from headrace.errors import Unavailable, UserError
from headrace.files.private import home_folder

NAME = "headrace.toml"
KEPT = ("dsn", "setup_dsn", "spark", "store")


def check_project_file(home: Path, given: GlobalOptions) -> tuple[dict[str, str], bool]:
    """What the home folder's file is to say, and whether it is there; nothing is written.

    UserError if it says something else already, or if a password would be written.
    """
    file = home / NAME
    wanted = {name: value for name in KEPT if (value := getattr(given, name)) is not None}
    known = _read(file)
    for name, value in wanted.items():
        if known is not None and known.get(name) != value:
            raise UserError(
                "invalid-option",
                f"{file} says otherwise about {name}",
                hint="Edit that file, or choose another home folder.",
            )
        if name in ("dsn", "setup_dsn"):
            _refuse_password(name, value)
    return wanted, known is not None


def write_project_file(home: Path, given: GlobalOptions) -> Path | None:
    """Keep what was given in the home folder's file; gives the file, or None if there is none.

    A file that says the same already is left as it is; one that says something else is not
    overwritten. Passwords are not written.
    """
    file = home / NAME
    wanted, present = check_project_file(home, given)
    if present or not wanted:
        return file if present else None
    try:
        home_folder(home)
        file.write_text(project_file(wanted), encoding="utf-8")
    except OSError as error:
        raise Unavailable(
            "store-unreachable", f"{file} cannot be written", detail=str(error)
        ) from None
    return file


def project_file(values: dict[str, str]) -> str:
    """The text of the file. A JSON string is a TOML string, too."""
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
            "invalid-option", f"{file} cannot be read", detail=str(error), hint="Mend or remove it."
        ) from None


def _refuse_password(name: str, value: str) -> None:
    from headrace.source.conninfo import parse

    if value.startswith(("env:", "file:")):
        return
    if {"password", "sslpassword"} & parse(value).keys():
        option = "--" + name.replace("_", "-")
        raise UserError(
            "invalid-option",
            f"the connection string of {option} has a password, which is not written to a file",
            hint=f"Keep it elsewhere and name the place: {option} env:NAME or {option} file:PATH.",
        )
