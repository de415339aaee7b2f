"""Lines of the refresh history with the names of stream tables, as users see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.catalog import State
from headrace.catalog.records import Refresh


@dataclass(frozen=True)
class NamedRefresh(Refresh):
    """A line of the refresh history with the present names of its tables.

    `name` is that of `table`, None for a table that was dropped; `group_names` are those of
    `group`, without dropped tables.
    """

    name: str | None = None
    group_names: tuple[str, ...] = ()


def with_names(state: State, refreshes: Iterable[Refresh]) -> tuple[NamedRefresh, ...]:
    """Return the lines with the names that stream tables have in a state of the catalog."""
    names = {table.relation: f"{table.schema}.{table.name}" for table in state.stream_tables}
    return tuple(
        NamedRefresh(
            **vars(refresh),
            name=names.get(refresh.table),
            group_names=tuple(names[relation] for relation in refresh.group if relation in names),
        )
        for refresh in refreshes
    )
