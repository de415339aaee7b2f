"""health: one answer to whether all is well, for people and for monitoring. No Spark is started."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from headrace.cli.call import Invocation
from headrace.cli.exits import DONE, NOT_WELL
from headrace.cli.tables import table_of
from headrace.cli.words import plain

Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 also if there are only warnings.")
]


def health(call: Invocation, strict: Strict = False) -> int:
    """Say whether all is well; the exit code is 1 if something is critical.

    Looked at are the daemon, stream tables, lag, capture, disk and roles.
    """
    with call.project() as project:
        found = project.health_check()
    call.screen.document({"level": found.level, "checks": [asdict(one) for one in found.checks]})
    rows = ((one.area, one.level, plain(one.detail)) for one in found.checks)
    call.screen.show(table_of(("area", "level", "what was seen"), rows, prose="what was seen"))
    bad = ("critical", "warning") if strict else ("critical",)
    return NOT_WELL if found.level in bad else DONE
