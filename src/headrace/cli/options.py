"""The options that every command has, and `--option NAME=VALUE` of stream tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.call import GlobalOptions, Invocation
from headrace.cli.failures import guarded
from headrace.errors import UserError
from headrace.statements.options import OPTIONS

PANEL = "Options of every command"

Home = Annotated[
    Path | None,
    typer.Option(
        "--home", help="Home folder; .headrace if not given (HEADRACE_HOME).", rich_help_panel=PANEL
    ),
]
Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        help="PostgreSQL database; an embedded server if not given (HEADRACE_DSN).",
        rich_help_panel=PANEL,
    ),
]
SetupDsn = Annotated[
    str | None,
    typer.Option(
        "--setup-dsn",
        help="The same database as a role that may create triggers (HEADRACE_SETUP_DSN).",
        rich_help_panel=PANEL,
    ),
]
Spark = Annotated[
    str | None,
    typer.Option(
        "--spark",
        help="Spark master or Spark Connect address; local Spark if not given (HEADRACE_SPARK).",
        rich_help_panel=PANEL,
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Where the Delta tables are; store/ in the home folder if not given (HEADRACE_STORE).",
        rich_help_panel=PANEL,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document instead of text.", rich_help_panel=PANEL),
]

SHARED: tuple[tuple[str, Any, Any], ...] = (
    ("home", Home, None),
    ("dsn", Dsn, None),
    ("setup_dsn", SetupDsn, None),
    ("spark", Spark, None),
    ("store", Store, None),
    ("json", Json, False),
)


def with_shared_options(name: str, command: Callable[..., int | None]) -> Callable[..., int]:
    """Return the command as typer reads it, with the shared options turned into an Invocation.

    `f(call, x)` is read as `f(x, home, dsn, …)`; what stands before the command's name counts
    where the option is not repeated after it.
    """

    def run(context: typer.Context, **values: Any) -> int:
        own_options = GlobalOptions(**{option: values.pop(option) for option, _, _ in SHARED})
        call = Invocation(own_options.over(context.obj or GlobalOptions()))
        return guarded(call, name, lambda: command(call, **values))

    own = list(signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for option, annotation, default in SHARED
    ]
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    read = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own]
    read += [
        parameter
        for parameter in shared
        if parameter.name not in {own_parameter.name for own_parameter in own}
    ]
    run.__signature__ = Signature([context, *read])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (context, *read)}
    run.__doc__ = command.__doc__
    return run


# These have an option of the command line of their own.
APART = ("schedule", "refresh_mode")

_LISTED = "; ".join(
    f"{option.name}: {option.values}" for option in OPTIONS if option.name not in APART
)
TableOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help=f"May be repeated; an empty value resets the option to its default. {_LISTED}.",
    ),
]


def table_options(texts: Sequence[str] | None, **apart: str | None) -> dict[str, Any]:
    """Return the given options by name, each at most once; None for one without a value.

    An option of the command line of its own, given `apart`, is left out if it is None.
    """
    options: dict[str, Any] = {k: v for k, v in apart.items() if v is not None}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise UserError(
                "invalid-option",
                f"invalid --option {text!r}: must be NAME=VALUE",
                hint="--option tier=warm",
            )
        if name in options:
            raise UserError("invalid-option", f"option {name} specified more than once")
        options[name] = value or None
    return options
