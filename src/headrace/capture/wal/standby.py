"""Whether a server would take a session of ours for one of its synchronous standbys.

Commits that wait for standbys would then go on when we tell what was flushed, although we keep
nothing that could bring them back. PostgreSQL tells standbys by their application names; its view
of them shows a session that has flushed nothing as none.
"""

from __future__ import annotations

import re

from headrace.errors import UserError
from headrace.source.connection import Database
from headrace.source.faults import translated

SETTING = "SELECT current_setting('synchronous_standby_names')"
# Those of a list such as: FIRST 2 (one, "an other", *). That words and numbers count, too, is safe.
NAME = re.compile(r'"((?:[^"]|"")*)"|([^\s,()"]+)')


def is_standby(setting: str, name: str) -> bool:
    """Whether a server with this setting takes sessions of this application for standbys (pure)."""
    listed = {quoted.replace('""', '"') or bare for quoted, bare in NAME.findall(setting)}
    return "*" in listed or name.lower() in {one.lower() for one in listed}


def require_no_standby(database: Database, name: str) -> None:
    """Raise `capture-not-set-up` where sessions of this application count as standbys."""
    with database.session() as connection, translated():
        row = connection.execute(SETTING).fetchone()
    if row is not None and is_standby(row[0], name):
        raise UserError(
            "capture-not-set-up",
            "the server takes a stream for a synchronous standby",
            detail=f"synchronous_standby_names is {row[0]}.",
            hint="Name the standbys there one by one, and none of them like our sessions.",
        )
