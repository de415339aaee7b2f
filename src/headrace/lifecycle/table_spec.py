"""The stream tables to be built: new ones, replacements, or rebuilds, and who reads whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection

from headrace.catalog import State
from headrace.catalog.records import Status, StreamTable, ViewRecord, is_stale
from headrace.errors import UserError
from headrace.graph import components, find_cycle
from headrace.lifecycle.cycle_members import Name
from headrace.lifecycle.name_resolver import first_named
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.planned_table import FIRST, TableRequest
from headrace.query import table_names

ALTERED = "the query was altered"
REPARTITIONED = "the partitioning was altered"
READER = "a table that it reads was rebuilt"


@dataclass(frozen=True)
class TableSpec:
    """A table to be built of a request, or `old` rebuilt; with both, `old` is replaced."""

    reason: str
    request: TableRequest | None = None
    old: StreamTable | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it shall be made without rows; a table that has rows keeps them."""
        if self.request is None or self.request.initialize:
            return False
        return self.old is None or self.old.is_uninitialized


TableSpecs = dict[Name, TableSpec]


@dataclass(frozen=True)
class SpecDependencies:
    """Who reads whom among existing and requested tables.

    `specs` has the given ones and those that follow from them: tables below a requested one
    that are stale and not suspended. What a table that is filled reads is filled, too.
    """

    state: State
    specs: dict[Name, TableSpec]
    reads: dict[Name, frozenset[Name]]

    @staticmethod
    def of(
        connection: Connection[Any],
        state: State,
        specs: Sequence[TableSpec],
        search_path: tuple[str, ...],
    ) -> SpecDependencies:
        named = {_requested_name(spec, search_path): spec for spec in specs}
        if len(named) < len(specs):
            raise UserError("name-exists", "two of the stream tables have the same name")
        reads = {_name(table): frozenset(_inputs(state, table)) for table in state.stream_tables}
        tables = frozenset(reads) | named.keys()
        texts = {
            _name(table): (table.query, table.search_path)
            for table in state.stream_tables
            if table.is_uninitialized
        }
        for name, spec in named.items():
            if spec.request is not None:
                texts[name] = spec.request.query, search_path
        for name, (text, path) in texts.items():
            reads[name] = frozenset(read_tables(connection, text, path, tables))
        filled = {name for name, spec in named.items() if not spec.is_empty}
        below = _upstream(reads, filled)
        for name, spec in named.items():
            if spec.request is not None:
                fill = name in below or not spec.is_empty
                named[name] = replace(spec, request=replace(spec.request, initialize=fill))
        for table in state.stream_tables:
            name = _name(table)
            going = is_stale(table) and table.status is not Status.SUSPENDED
            if name in below and name not in named and going:
                named[name] = TableSpec(why_rebuilt(table), old=table)
        return SpecDependencies(state, named, reads)

    def ordered(
        self, readers: Iterable[StreamTable], *, allow_circular: bool
    ) -> list[tuple[TableSpecs, bool]]:
        """Return the specs and these readers, each after those it reads.

        Those that read each other come together, and are marked. They are `circular` where that is
        not allowed, unless they are rebuilt as they were.
        """
        specs = dict(self.specs)
        for reader in readers:
            specs.setdefault(_name(reader), TableSpec(READER, old=reader))
        batches: list[tuple[TableSpecs, bool]] = []
        for component in components(self.reads):
            together = {name: specs[name] for name in component.members if name in specs}
            requested = any(spec.request is not None for spec in together.values())
            if component.is_cyclic and requested and not allow_circular:
                raise _circular(self.inside(together), self.specs)
            if together:
                batches.append((together, component.is_cyclic))
        return batches

    def inside(self, names: Collection[Name]) -> dict[Name, frozenset[Name]]:
        """Return what these tables read of each other."""
        return {name: self.reads[name] & frozenset(names) for name in names}


def why_rebuilt(table: StreamTable) -> str:
    """Return the reason for which a stale table is rebuilt."""
    return FIRST if table.is_uninitialized else READER


def _circular(reads: dict[Name, frozenset[Name]], specs: Iterable[Name]) -> UserError:
    """Return the error of tables that read each other; the path begins with a requested one."""
    cycle = find_cycle(reads)
    assert cycle is not None
    names = cycle.names
    begin = next((place for place, name in enumerate(names) if name in specs), 0)
    path = [".".join(name) for name in (*names[begin:], *names[:begin])]
    return UserError(
        "circular",
        f"stream table {path[0]} would read itself",
        detail=f"The path is {' → '.join([*path, path[0]])}.",
        hint="To allow cycles, turn the setting allow_circular on.",
    )


def _name(table: StreamTable) -> Name:
    return table.schema, table.name


def _requested_name(spec: TableSpec, search_path: tuple[str, ...]) -> Name:
    """Return the name that a table has now, or will have if it is new."""
    if spec.old is not None:
        return _name(spec.old)
    assert spec.request is not None
    return parse_name(spec.request.name, search_path[0])


def _inputs(state: State, table: StreamTable) -> list[Name]:
    origins = (state.origin(relation) for relation in table.inputs)
    return [_name(origin) for origin in origins if isinstance(origin, StreamTable)]


def read_tables(
    connection: Connection[Any], text: str, search_path: tuple[str, ...], tables: Collection[Name]
) -> set[Name]:
    """Return those of the tables that a query names, or a view that it reads."""
    names_read: set[Name] = set()
    views: set[ViewRecord] = set()
    texts = [text]
    while texts:
        names = _names(texts.pop(), connection.info.dbname)
        for origin in first_named(connection, names, search_path, tables).values():
            if isinstance(origin, ViewRecord):
                texts += [] if origin in views else [origin.text]
                views.add(origin)
            elif origin in tables:
                names_read.add(origin)
    return names_read


def _names(text: str, home: str) -> tuple[tuple[str | None, str], ...]:
    """Return the names in a text; its errors are reported when it is checked."""
    try:
        return table_names(text, home)
    except UserError:
        return ()


def _upstream(reads: dict[Name, frozenset[Name]], names: Iterable[Name]) -> set[Name]:
    upstream: set[Name] = set()
    waiting = list(names)
    while waiting:
        for name in reads.get(waiting.pop(), ()):
            if name not in upstream:
                upstream.add(name)
                waiting.append(name)
    return upstream
