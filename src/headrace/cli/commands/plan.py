"""plan, apply: the stream tables of a project folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.commands.change import ask
from headrace.cli.tables import table_of
from headrace.cli.words import counted, plain
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.project.plan import ProjectPlan

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]",
        help="A folder of *.sql with CREATE STREAM TABLE statements; the current one if not given.",
    ),
]
Prune = Annotated[
    bool, typer.Option("--prune", help="Drop stream tables that are not in the folder.")
]

PLANNED = {
    "create": "to create",
    "rebuild": "to rebuild",
    "follow": "to be rebuilt with them",
    "alter": "to alter",
    "drop": "to drop",
    "leave": "left alone",
    "unchanged": "unchanged",
}
DONE = PLANNED | {
    "create": "created",
    "rebuild": "rebuilt",
    "follow": "rebuilt with them",
    "alter": "altered",
    "drop": "dropped",
}


def plan(
    call: Invocation,
    folder: Folder = None,
    prune: Prune = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also save the plan in this file, for apply.")
    ] = None,
) -> None:
    """Show how the stream tables differ from those of a folder; change nothing."""
    from headrace.project.document import plan_document, save_plan

    with call.project() as project, call.doing("planning"):
        made = project.plan(folder or Path(), prune=prune)
    if out is not None:
        save_plan(made, out)
    call.screen.document(plan_document(made))
    _show(call, made)
    _show_notices(call, made)
    if made.nothing_to_do:
        call.screen.show("nothing to do")
    if out is not None:
        call.screen.note(plain(f"Saved the plan. Apply it with: headrace apply --plan {out}"))


def apply(
    call: Invocation,
    folder: Folder = None,
    prune: Prune = False,
    plan_file: Annotated[
        Path | None,
        typer.Option("--plan", help="Apply this saved plan; refuse it if it is stale."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before dropping.")] = False,
) -> None:
    """Create, alter, rebuild and, with --prune, drop stream tables as a folder defines them."""
    from headrace.project.document import load_plan, plan_document

    if plan_file is not None and prune:
        raise UserError(
            "invalid-option",
            "--plan and --prune cannot be used together",
            hint="A saved plan includes the choice.",
        )
    saved = None if plan_file is None else load_plan(plan_file)
    if saved is not None and folder is not None:
        saved = replace(saved, folder=str(folder))
    with call.project(changes=True) as project:
        if saved is None:
            with call.doing("planning"):
                saved = project.plan(folder or Path(), prune=prune)
        _show(call, saved)
        dropped = [change.table for change in saved.changes if change.act == "drop"]
        if dropped and not yes and plan_file is None:
            ask(f"Drop {plain(', '.join(dropped))}, with what is served and stored?", "dropping")
        with call.doing("applying"):
            done = project.apply(saved)
    call.screen.document(plan_document(done))
    call.screen.show("nothing to do" if done.nothing_to_do else _summary(done, DONE))
    _show_notices(call, done)


def _show(call: Invocation, made: ProjectPlan) -> None:
    """Print every table with its change and the reason; unchanged tables are only counted."""
    rows = [
        (
            change.table,
            change.act.value,
            change.reason + _also(change.rebuilt_readers),
        )
        for change in made.changes
        if change.act != "unchanged"
    ]
    if rows:
        call.screen.show(table_of(("stream table", "what", "why"), rows, prose="why"))
    if made.changes:
        call.screen.show(_summary(made, PLANNED))


def _show_notices(call: Invocation, made: ProjectPlan) -> None:
    for notice in made.notices:
        call.screen.note(f"notice: {notice}")


def _also(readers: tuple[str, ...]) -> str:
    return f"; with it {', '.join(readers)}" if readers else ""


def _summary(made: ProjectPlan, words: dict[str, str]) -> str:
    parts = [f"{number:,} {words[act]}" for act, number in made.counts.items()]
    return f"{counted(len(made.changes), 'stream table')}: {', '.join(parts)}"
