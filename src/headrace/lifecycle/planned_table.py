"""Check a request for a stream table and plan the table, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from psycopg import Connection, sql

from headrace.catalog import State, new_relation_id
from headrace.catalog.records import (
    InputNames,
    OutputColumn,
    RefreshMode,
    Source,
    StreamTable,
)
from headrace.errors import UserError
from headrace.lifecycle.cycle_members import CycleMembers
from headrace.lifecycle.name_resolver import Inputs, NameResolver, existing, find_inputs
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.partitioning import take_over
from headrace.publish.partitioning import check_partition
from headrace.publish.served_key import check_key
from headrace.query import BoundQuery, bind
from headrace.query.schema import Rules
from headrace.relations.definition import (
    Definition,
    Input,
    InputSchema,
    new_definition,
    rules_of,
    stored_edges,
    used_columns,
)
from headrace.source.describe import DescribedColumn
from headrace.source.server import home_collation
from headrace.source.table import SourceColumn
from headrace.statements.options import checked, refresh_mode
from headrace.types import Type

FIRST = "first refresh"


@dataclass(frozen=True)
class TableRequest:
    """A user's request, not yet checked against anything.

    Unless `initialize`, a new table gets its rows from its first refresh; one that has rows keeps
    them.
    """

    name: str
    query: str
    schedule: str | None = None
    refresh_mode: RefreshMode = RefreshMode.AUTO
    options: dict[str, Any] = field(default_factory=dict)
    initialize: bool = True

    @staticmethod
    def of(name: str, query: str, values: Mapping[str, Any]) -> TableRequest:
        """Return the request with options as users give them; None is the default."""
        options = {option: v for option, v in checked(values).items() if v is not None}
        schedule = options.pop("schedule", None)
        mode = refresh_mode(options.pop("refresh_mode", None))
        initialize = options.pop("initialize", True)
        return TableRequest(name, query, schedule, mode, options, initialize)

    @staticmethod
    def read(name: str, definition: str | Mapping[str, Any]) -> TableRequest:
        """Return the request of a query alone, or of a mapping with `query` and options."""
        options = {"query": definition} if isinstance(definition, str) else dict(definition)
        if "query" not in options:
            raise UserError("invalid-option", f"no query given for {name}")
        return TableRequest.of(name, options.pop("query"), options)


@dataclass(frozen=True)
class PlannedTable:
    """A stream table to be built, for a reason, new or in the place of `old`.

    `cycle` has the relations of all tables of the cycle that it is in, if it is in one. One that is
    `empty` is only recorded and served without rows, for its first refresh to fill it.
    """

    table: StreamTable
    definition: Definition
    inputs: tuple[Input, ...]
    notices: tuple[str, ...]
    reason: str
    old: StreamTable | None = None
    cycle: frozenset[str] = frozenset()
    empty: bool = False

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(relation for relation in self.inputs if isinstance(relation, Source))


def check(
    resolver: NameResolver,
    state: State,
    request: TableRequest,
    search_path: tuple[str, ...],
    *,
    old: StreamTable | None = None,
    reason: str = FIRST,
    relation: str | None = None,
    cycle_members: CycleMembers | None = None,
) -> PlannedTable:
    """Plan the table of a request, or raise UserError. `old` is the table that it replaces.

    One that is in a cycle has the relation that the others of its `cycle_members` know it by.
    A source that is captured already is used as it is. Where the query uses a column that is not
    in it as it is in the table, `RecaptureNeeded` is raised, unless nothing is captured for it yet.
    """
    schema, name = parse_name(request.name, search_path[0])
    described = resolver.describe(request.query, search_path)
    query_inputs = find_inputs(resolver, state, request.query, search_path)
    collation = home_collation(resolver.home)
    rules = rules_of(collation, request.options)
    inputs = query_inputs.inputs
    if request.initialize:
        inputs = _captured(query_inputs, state, request.query, search_path, rules)
    input_schema = InputSchema.of(inputs, query_inputs.views, state, search_path, rules)
    bound = bind(request.query, input_schema, in_cycle=cycle_members is not None, rules=rules)
    resolver.require_built_in(request.query, search_path)
    relation = relation or new_relation_id()
    if cycle_members is not None:
        cycle_members.admit(relation, request.refresh_mode, bound)
    cycle = related_cycle(cycle_members)
    definition = new_definition(relation, bound, input_schema, cycle)
    columns = output_columns(bound, described)
    options = take_over(resolver, inputs.values(), definition, columns, request.options)
    check_partition(columns, options)
    check_key(columns, key_names(columns, definition), options)
    table = StreamTable(
        relation,
        schema,
        name,
        request.query,
        columns,
        inputs=tuple(origin.relation for origin in inputs.values()),
        key=key_names(columns, definition),
        refresh_mode=request.refresh_mode,
        schedule=request.schedule,
        options=options,
        search_path=search_path,
        created_at=datetime.now(UTC) if old is None else old.created_at,
        names={origin.relation: named for named, origin in inputs.items()},
        views=query_inputs.views,
        edges=stored_edges(bound),
        default_collation=collation,
        creator=resolver.home.info.user,
    )
    return PlannedTable(
        table,
        definition,
        tuple(inputs.values()),
        bound.notices,
        reason,
        old,
        cycle,
        empty=not request.initialize,
    )


def related_cycle(cycle_members: CycleMembers | None) -> frozenset[str]:
    return frozenset() if cycle_members is None else cycle_members.members


def key_names(columns: tuple[OutputColumn, ...], definition: Definition) -> tuple[str, ...]:
    """Return the key by its columns' names."""
    return tuple(columns[place].name for place in definition.key)


def reader_would_fail(reader: StreamTable, read: str, error: UserError) -> UserError:
    """Return the error for a reader that cannot be bound to its rebuilt input."""
    return UserError(
        "has-dependents",
        f"stream table {reader.schema}.{reader.name} reads {read} and would fail",
        detail=f"{error.message[:1].upper()}{error.message[1:]}.",
        hint="Alter or drop the reader first.",
    )


def check_free(connection: Connection[Any], state: State, schema: str, name: str) -> None:
    """Refuse a name that is taken, or whose schema does not exist."""
    if state.stream_table(schema, name) is not None:
        raise UserError(
            "name-exists",
            f"stream table {schema}.{name} already exists",
            hint="Drop it first, or choose another name.",
        )
    if existing(connection, [(schema, name)]):
        raise UserError(
            "name-exists",
            f"a table, view or index named {schema}.{name} already exists",
            hint="Choose another name for the stream table.",
        )
    quoted = sql.Identifier(schema).as_string()
    row = connection.execute("SELECT to_regnamespace(%s)", [quoted]).fetchone()
    if row is None or row[0] is None:
        raise UserError(
            "invalid-name",
            f"schema {schema} does not exist",
            hint=f"CREATE SCHEMA {quoted};",
        )


def _captured(
    query_inputs: Inputs,
    state: State,
    query: str,
    search_path: tuple[str, ...],
    rules: Rules,
) -> dict[InputNames, Input]:
    """Return the inputs, with every captured source as it is recorded."""
    if not query_inputs.captured:
        return query_inputs.inputs
    schema = InputSchema.of(query_inputs.inputs, query_inputs.views, state, search_path, rules)
    plan = bind(query, schema, rules=rules).plan
    for named, recorded in query_inputs.captured.items():
        now = query_inputs.inputs[named]
        assert isinstance(now, Source)
        if not has_columns(recorded, now.columns, used_columns(plan, recorded.relation)):
            raise RecaptureNeeded(recorded.relation)
    return {**query_inputs.inputs, **query_inputs.captured}


class RecaptureNeeded(Exception):
    """A source was captured without, or with other, columns that a query uses."""

    def __init__(self, relation: str) -> None:
        super().__init__(relation)
        self.relation = relation


def has_columns(source: Source, now: tuple[SourceColumn, ...], used: frozenset[str]) -> bool:
    """Return whether a source has captured these columns as they are now."""
    captured = {(c.number, c.name, c.type) for c in source.columns if c.type is not None}
    same = {c.physical for c in now if (c.number, c.name, c.type) in captured}
    return used <= same


def output_columns(
    bound: BoundQuery, described: tuple[DescribedColumn, ...]
) -> tuple[OutputColumn, ...]:
    """Return the served columns: PostgreSQL and the binder must agree on names and types."""
    columns = []
    names_so_far: set[str] = set()
    for column, name, output in zip(bound.plan.columns, bound.names, described, strict=True):
        if output.name in names_so_far:
            raise UserError(
                "invalid-query",
                f"two output columns are named {output.name}",
                hint="Give one of them another name with AS.",
            )
        names_so_far.add(output.name)
        if not _alike(output, column.type) or output.name != name:
            raise UserError(
                "unsupported-type",
                f"output column {output.name} is {output.declared} in PostgreSQL"
                f" and {column.type.sql} here",
                hint="Cast the column to the type that you want.",
            )
        columns.append(OutputColumn(name, column.type, output.declared))
    return tuple(columns)


def _alike(output: DescribedColumn, type_: Type) -> bool:
    """Return whether both types are of one kind, arrays also in their elements."""
    if type_.unsized or output.type is None:
        return type_.unsized and output.declared == type_.sql
    if output.type.element is not None and type_.element is not None:
        return output.type.element.kind == type_.element.kind
    return output.type.kind == type_.kind
