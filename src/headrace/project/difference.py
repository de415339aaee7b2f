"""Compare a folder's stream tables with the catalog's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headrace.catalog import State
from headrace.catalog.records import Status, StreamTable
from headrace.errors import UserError
from headrace.graph import downstream
from headrace.lifecycle.cycle_members import Name, shown
from headrace.lifecycle.partitioning import needs_rebuild, same_partitions
from headrace.lifecycle.planned_table import TableRequest
from headrace.project.plan import (
    Act,
    ProjectPlan,
    TableChange,
    bare,
    catalog_fingerprint,
    folder_fingerprint,
)
from headrace.project.read import DefinedTable
from headrace.publish.partition_scheme import OPTION

Reads = Mapping[Name, frozenset[Name]]
"""For every table of the folder the stream tables that it will read."""


def difference(
    folder: str, definitions: Sequence[DefinedTable], state: State, reads: Reads, *, prune: bool
) -> ProjectPlan:
    """Return the plan that makes the catalog's stream tables those of the folder.

    Those that are not in the folder are dropped with `prune` and else left alone; it is
    `has-dependents` if one that stays will read one that would go.
    """
    compared = _Comparison(
        {definition.name: definition for definition in definitions}, state, prune
    )
    compared.refuse_needed(reads)
    return ProjectPlan(
        folder,
        prune,
        folder_fingerprint(definitions),
        catalog_fingerprint(state),
        tuple(compared.changes()),
    )


def differs(request: TableRequest, table: StreamTable) -> bool:
    """Return whether a table has to be rebuilt: for another query or other partitions."""
    return _query_differs(request, table) or needs_rebuild(table.options, request.options)


def _query_differs(request: TableRequest, table: StreamTable) -> bool:
    """Return whether the query is another; as text, apart from space at the ends."""
    return bare(request.query) != bare(table.query)


@dataclass(frozen=True)
class _Comparison:
    wanted: Mapping[Name, DefinedTable]
    state: State
    prune: bool

    @cached_property
    def tables(self) -> dict[Name, StreamTable]:
        return {(table.schema, table.name): table for table in self.state.stream_tables}

    @cached_property
    def going(self) -> frozenset[Name]:
        return frozenset(self.tables.keys() - self.wanted.keys() if self.prune else ())

    @cached_property
    def rebuilt(self) -> dict[Name, tuple[Name, ...]]:
        """For every table that is rebuilt those that stay and read it, directly or not."""
        readers_by_name = {}
        for name, table in self.tables.items():
            if name in self.wanted and differs(self.wanted[name].request, table):
                readers = downstream(self.state.stream_tables, table.relation)
                names = ((reader.schema, reader.name) for reader in readers)
                readers_by_name[name] = tuple(
                    reader for reader in names if reader != name and reader not in self.going
                )
        return readers_by_name

    def refuse_needed(self, reads: Reads) -> None:
        for reader, names in sorted(reads.items()):
            for name in sorted(names & self.going):
                raise UserError(
                    "has-dependents",
                    f"{shown(name)} is not in the folder, and {shown(reader)} reads it",
                    hint="Add it to the folder, or plan without prune.",
                )

    def changes(self) -> Iterator[TableChange]:
        for name in sorted(self.wanted.keys() | self.tables.keys()):
            if name not in self.wanted:
                yield self._not_wanted(name)
            elif name not in self.tables:
                yield TableChange(Act.CREATE, name, "not there yet", place=self.wanted[name].place)
            else:
                yield self._both(self.wanted[name], self.tables[name])

    def _not_wanted(self, name: Name) -> TableChange:
        causes = self._causes(name)
        if name in self.going:
            return TableChange(Act.DROP, name, "not in the folder")
        if causes:
            return TableChange(Act.FOLLOW, name, f"not in the folder; {causes}")
        return TableChange(Act.LEAVE, name, "not in the folder")

    def _both(self, definition: DefinedTable, table: StreamTable) -> TableChange:
        name, place = definition.name, definition.place
        options = options_that_differ(definition.request, table)
        reasons = [_change_text(option, old, new) for option, (old, new) in options.items()]
        changed = {option: new for option, (_, new) in options.items()}
        if name in self.rebuilt:
            rebuilt_readers = tuple(shown(reader) for reader in self.rebuilt[name])
            other_query = ["the query differs"] if _query_differs(definition.request, table) else []
            reason = "; ".join([*other_query, *reasons])
            return TableChange(Act.REBUILD, name, reason, changed, rebuilt_readers, place)
        causes = self._causes(name)
        if reasons:
            reason = "; ".join([*reasons, *([causes] if causes else [])])
            return TableChange(Act.ALTER, name, reason, changed, place=place)
        if causes:
            return TableChange(Act.FOLLOW, name, causes, place=place)
        return TableChange(Act.UNCHANGED, name, "as in the folder", place=place)

    def _causes(self, name: Name) -> str | None:
        """Return why a table has to be rebuilt that itself did not change."""
        rebuilt = [
            shown(rebuilt_name) for rebuilt_name, readers in self.rebuilt.items() if name in readers
        ]
        if not rebuilt:
            return None
        still = self.tables[name].status is Status.SUSPENDED
        when = "rebuilt when it is resumed, for it is suspended" if still else "rebuilt"
        return f"{when}: it reads {', '.join(rebuilt)}"


def options_that_differ(request: TableRequest, table: StreamTable) -> dict[str, tuple[Any, Any]]:
    """Return the old and the new value of every option that changes; None is the default."""
    old = {"schedule": table.schedule, "refresh_mode": table.refresh_mode.value, **table.options}
    new = {
        "schedule": request.schedule,
        "refresh_mode": request.refresh_mode.value,
        **request.options,
    }
    names = dict.fromkeys((*old, *new))
    if same_partitions(old.get(OPTION), new.get(OPTION)):
        names.pop(OPTION, None)
    return {
        name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)
    }


def _change_text(option: str, old: Any, new: Any) -> str:
    none = "by hand" if option == "schedule" else "default"
    return f"{option}: {none if old is None else old} → {none if new is None else new}"
