"""The fuse: a change that is too large to be meant stops a table before anything is computed."""

from __future__ import annotations

from headrace.catalog import State
from headrace.engine import Engine
from headrace.errors import HeadraceError, UserError
from headrace.graph.cycles import Group
from headrace.refresh.sizes import changed_rows

TOO_LARGE = "change-too-large"


def check_fuse(engine: Engine, group: Group, changed: frozenset[str], state: State) -> None:
    """`change-too-large` if more rows come into a table than its `max_change_rows`.

    Rows are counted as they are stored: an update is two, and what is alike in one cut is one.
    What a table was made from does not count.
    """
    settings = engine.settings(state)
    for table in group:
        most = table.options.get("max_change_rows", settings.max_change_rows)
        if most is None or table.epoch == 0:
            continue
        rows = sum(changed_rows(engine, state, table, changed.intersection(table.inputs)).values())
        if rows > most:
            raise UserError(
                TOO_LARGE,
                f"{rows} changed rows would come into {table.schema}.{table.name}, more than the"
                f" {most} that max_change_rows allows",
                hint="If they are meant, resume the stream table; it is made anew.",
            )


def blows_fuse(error: HeadraceError) -> bool:
    """Whether it is a failure that stops the table at once."""
    return error.code == TOO_LARGE
