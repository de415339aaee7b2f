"""The command `headrace`: its commands in the order of the help page, and how it is started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Annotated

import typer

from headrace.cli.call import GlobalOptions
from headrace.cli.commands.alter import alter, reinit, repair, resume, suspend
from headrace.cli.commands.cdc import cdc
from headrace.cli.commands.change import create, drop, refresh, replace
from headrace.cli.commands.daemon import up, wait
from headrace.cli.commands.databases import alter_database, attach, databases, detach
from headrace.cli.commands.demo import demo
from headrace.cli.commands.graph import cycles, explain_strata, graph, groups, strata
from headrace.cli.commands.plan import apply, plan
from headrace.cli.commands.project import change_setting, init, list_settings, uninstall
from headrace.cli.commands.psql import psql
from headrace.cli.commands.run import run
from headrace.cli.commands.show import explain, health, history, ls, status
from headrace.cli.commands.verify import receipts, verify
from headrace.cli.exit_codes import SUMMARY
from headrace.cli.failures import stopped, wrong_usage
from headrace.cli.options import Dsn, Home, Json, SetupDsn, Spark, Store, with_shared_options
from headrace.cli.screen import Screen
from headrace.files.private import private_umask

COMMANDS: tuple[tuple[str, Callable[..., int | None]], ...] = (
    ("demo", demo),
    ("init", init),
    ("create", create),
    ("replace", replace),
    ("alter", alter),
    ("run", run),
    ("plan", plan),
    ("apply", apply),
    ("refresh", refresh),
    ("up", up),
    ("wait", wait),
    ("verify", verify),
    ("receipts", receipts),
    ("ls", ls),
    ("status", status),
    ("health", health),
    ("history", history),
    ("explain", explain),
    ("graph", graph),
    ("strata", strata),
    ("cycles", cycles),
    ("groups", groups),
    ("explain-strata", explain_strata),
    ("suspend", suspend),
    ("resume", resume),
    ("reinit", reinit),
    ("repair", repair),
    ("drop", drop),
    ("attach", attach),
    ("alter-database", alter_database),
    ("detach", detach),
    ("databases", databases),
    ("cdc", cdc),
    ("settings", list_settings),
    ("set", change_setting),
    ("psql", psql),
    ("uninstall", uninstall),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; the caller has nothing else to do."""
    argument_list = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    screen = Screen(as_json="--json" in argument_list)
    try:
        with private_umask():
            code = application()(argument_list, prog_name="headrace", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "headrace"
        return wrong_usage(screen, _sentence(error.format_message()), command)
    except typer.Abort:
        return stopped(screen)
    return int(code or 0)


def application() -> typer.Typer:
    """Return all commands, as typer knows them."""
    app = typer.Typer(
        name="headrace", no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False
    )
    app.callback(epilog=SUMMARY)(_root)
    for name, command in COMMANDS:
        app.command(name)(with_shared_options(name, command))
    return app


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"headrace {_installed_version()}")
        raise typer.Exit


def _installed_version() -> str:
    try:
        return metadata.version("headrace")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _root(
    context: typer.Context,
    *,
    home: Home = None,
    dsn: Dsn = None,
    setup_dsn: SetupDsn = None,
    spark: Spark = None,
    store: Store = None,
    json: Json = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_show_version
        ),
    ] = False,
) -> None:
    """Keep stream tables fresh: SQL over PostgreSQL tables, maintained incrementally by Spark."""
    context.obj = GlobalOptions(home, dsn, setup_dsn, spark, store, json)


def _sentence(text: str) -> str:
    """Return a message of the parser in our style: lower case, without the period."""
    return text[:1].lower() + text[1:].rstrip(".")
