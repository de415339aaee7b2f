"""repair: find what is lost or damaged in the store, and rebuild it."""

from __future__ import annotations

from dataclasses import asdict

from headrace.cli.call import Invocation
from headrace.cli.tables import table_of
from headrace.cli.words import plain


def repair(call: Invocation) -> None:
    """Read all that is stored, and rebuild what is lost or damaged.

    Damaged sources are copied again, and no others; damaged stream tables are rebuilt, with all
    that read them.
    """
    with call.project() as project, call.doing("repairing"):
        found = project.repair()
    call.screen.document({"damages": [asdict(one) for one in found]})
    if not found:
        call.screen.show("nothing is damaged")
        return
    rows = [(one.name, one.kind, "yes" if one.mended else "no", plain(one.lost)) for one in found]
    call.screen.show(table_of(("name", "what", "mended", "lost"), rows, prose="lost"))
