"""The options of a stream table on a command line: `--option NAME=VALUE`, as often as needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headrace.errors import UserError
from headrace.statements.options import OPTIONS

# These have an option of the command line of their own.
APART = ("schedule", "refresh_mode")

_LISTED = "; ".join(f"{one.name}: {one.values}" for one in OPTIONS if one.name not in APART)
TableOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help=f"May be repeated; without a value it is the default. {_LISTED}.",
    ),
]


def table_options(texts: Sequence[str] | None, **apart: str | None) -> dict[str, Any]:
    """Names and values as they were given, each once; a value that is not there is None.

    Of those that are given `apart` None is nothing given.
    """
    options: dict[str, Any] = {k: v for k, v in apart.items() if v is not None}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise UserError(
                "invalid-option", f"--option {text!r} is not NAME=VALUE", hint="Such as tier=warm."
            )
        if name in options:
            raise UserError("invalid-option", f"option {name} is given twice")
        options[name] = value or None
    return options
