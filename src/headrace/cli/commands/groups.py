"""groups: stream tables that belong together. No Spark is started."""

from __future__ import annotations

from dataclasses import asdict

from headrace.cli.call import Invocation
from headrace.cli.tables import groups_table


def groups(call: Invocation) -> None:
    """Show the groups: stream tables that belong together, and if they are published as one."""
    with call.project() as project:
        found = project.diamond_groups()
    call.screen.document({"groups": [asdict(one) for one in found]})
    if not found:
        call.screen.note("Every stream table is published by itself.")
        return
    call.screen.show(groups_table(found))
