"""The fuse: a change that is too large to be meant stops a table before anything is computed."""

from __future__ import annotations

from headrace.catalog import State
from headrace.catalog.records import Status, StreamTable
from headrace.engine import Engine
from headrace.errors import HeadraceError, UserError
from headrace.graph.components import Group
from headrace.refresh.sizes import changed_rows
from headrace.refresh.unread import rows_where_read

TOO_LARGE = "change-too-large"


def check_fuse(
    engine: Engine,
    group: Group,
    changed: frozenset[str],
    state: State,
    allowed: frozenset[str] = frozenset(),
) -> None:
    """`change-too-large` if more rows come into a table than its `max_change_rows`.

    Tables that are `allowed` take in whatever comes, since somebody has said so.

    Rows are counted as they are stored: an update is two, and what is alike in one cut is one.
    What a table was made from does not count, nor do columns that it does not read.
    """
    settings = engine.settings(state)
    for table in group:
        most = table.options.get("max_change_rows", settings.max_change_rows)
        if most is None or table.epoch == 0 or table.relation in allowed:
            continue
        inputs = changed.intersection(table.inputs)
        rows = sum(changed_rows(engine, state, table, inputs).values())
        if rows > most:
            rows = rows_where_read(engine, state, table, inputs)
        if rows > most:
            raise UserError(
                TOO_LARGE,
                f"{rows} changed rows would come into {table.schema}.{table.name}, more than the"
                f" {most} that max_change_rows allows",
                hint="If they are meant, resume the stream table with apply, which takes them in,"
                " or with rebuild, which computes it from scratch.",
            )


def was_blown(engine: Engine, table: StreamTable) -> bool:
    """Whether the fuse is why the table is suspended: its latest failure, for the same reason."""
    latest = engine.catalog.refreshes(table.relation, 1)
    return (
        table.status is Status.SUSPENDED
        and bool(latest)
        and latest[0].error == f"{TOO_LARGE}: {table.reason}"
    )


def blows_fuse(error: HeadraceError) -> bool:
    """Whether it is a failure that stops the table at once."""
    return error.code == TOO_LARGE
