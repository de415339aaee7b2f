"""Creating a stream table: checked first, then captured, copied, computed and published.

What is checked needs no right to write. From then on the order of writes keeps a crash harmless:
a source is in the catalog before its triggers exist, and a source that no stream table reads is
taken down again by whoever writes next.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from psycopg import Connection, sql

from headrace.catalog import Change, State, new_relation_id
from headrace.catalog.records import (
    Database,
    OutputColumn,
    RefreshMode,
    Relation,
    Source,
    Status,
    StreamTable,
)
from headrace.definition import Definition, Input, InputSchema, new_definition, relation_of
from headrace.engine import HOME, Engine
from headrace.errors import HeadraceError, UserError
from headrace.graph import upstream
from headrace.ingest.ingest import ingest
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.sources import remove_idle_sources
from headrace.publish.publish import publish
from headrace.query import BoundQuery, bind, table_names
from headrace.refresh.plan import Decision
from headrace.refresh.refresh import Attempt, advance, advance_all, require_active
from headrace.relations.rows import arrow_schema
from headrace.source.describe import DescribedColumn, describe
from headrace.source.introspect import find_table
from headrace.source.table import SourceTable
from headrace.steps import CreateLog, DropLog, RecordSources
from headrace.store import Pin


@dataclass(frozen=True)
class Request:
    """What the user asked for, not yet checked against anything."""

    name: str
    query: str
    schedule: str | None = None
    refresh_mode: RefreshMode = RefreshMode.AUTO
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    """A request that can be carried out: its table, its definition and what it reads."""

    table: StreamTable
    definition: Definition
    inputs: tuple[Input, ...]
    notices: tuple[str, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(one for one in self.inputs if isinstance(one, Source))


def check(engine: Engine, state: State, request: Request) -> Checked:
    """Everything that can be known before anything is written, or UserError."""
    search_path = engine.database.search_path
    with engine.database.session() as connection:
        schema, name = parse_name(request.name, search_path[0])
        _check_free(connection, state, schema, name)
        described = describe(connection, request.query, search_path)
        found = (
            _input(connection, state, *wanted, search_path) for wanted in table_names(request.query)
        )
        # A table that is named twice is one input.
        inputs = tuple({(one.schema, one.name): one for one in found}.values())
    input_schema = InputSchema.of(inputs, state, search_path)
    bound = bind(request.query, input_schema)
    relation = new_relation_id()
    table = StreamTable(
        relation,
        schema,
        name,
        request.query,
        _outputs(bound, described),
        inputs=tuple(one.relation for one in inputs),
        refresh_mode=request.refresh_mode,
        schedule=request.schedule,
        options=request.options,
        search_path=search_path,
        created_at=datetime.now(UTC),
    )
    definition = new_definition(relation, bound, input_schema)
    table = replace(table, key=tuple(table.columns[i].name for i in definition.key))
    return Checked(table, definition, inputs, bound.notices)


def create(engine: Engine, request: Request) -> StreamTable:
    """Make the stream table and fill it; on any failure nothing of it is left."""
    check(engine, engine.catalog.state(), request)
    with engine.writing() as lease:
        state = engine.catalog.state()
        checked = check(engine, state, request)
        try:
            _capture(engine, state, checked, lease.fence)
            inputs = frozenset(checked.table.inputs)
            state = ingest(engine, engine.catalog.state(), lease.fence, retry=inputs)
            _check_sources(state, checked)
            return _publish_first(engine, state, checked, lease.fence)
        except BaseException as error:
            _clean_up(engine, checked, lease.fence, error)
            raise


def _clean_up(engine: Engine, checked: Checked, fence: int, error: BaseException) -> None:
    """Remove what a failed creation left, unless it failed after the table was published."""
    try:
        state = engine.catalog.state()
        if state.origin(checked.table.relation) is None:
            for stage in checked.definition.stages:
                with engine.step(DropLog(stage.relation)):
                    engine.store.drop(stage.relation)
            remove_idle_sources(engine, fence)
    except HeadraceError as second:
        error.add_note(f"and cleaning up failed: {second.message}")


def _check_free(connection: Connection[Any], state: State, schema: str, name: str) -> None:
    if state.stream_table(schema, name) is not None:
        raise UserError(
            "name-exists",
            f"stream table {schema}.{name} exists already",
            hint="Drop it first, or choose another name.",
        )
    if _exists(connection, schema, name):
        raise UserError(
            "name-exists",
            f"a table, view or index called {schema}.{name} exists already",
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


def _input(
    connection: Connection[Any],
    state: State,
    schema: str | None,
    name: str,
    search_path: tuple[str, ...],
) -> Input:
    """What a name in FROM means: a stream table, or a source as it is or will be captured."""
    for candidate in (schema,) if schema is not None else search_path:
        found = state.stream_table(candidate, name)
        if found is not None:
            return found
        if _exists(connection, candidate, name):
            break
    return _source(state, find_table(connection, schema, name, search_path))


def _exists(connection: Connection[Any], schema: str, name: str) -> bool:
    regclass = sql.Identifier(schema, name).as_string()
    row = connection.execute("SELECT to_regclass(%s)", [regclass]).fetchone()
    return row is not None and row[0] is not None


def _source(state: State, table: SourceTable) -> Source:
    """The source as it is captured already, or as it will be."""
    known = state.source(HOME, table.oid)
    if known is not None:
        return known
    return Source(
        new_relation_id(),
        HOME,
        table.oid,
        table.schema,
        table.name,
        table.columns,
        table.keys,
        table.storage,
        table.row_triggers,
    )


def _outputs(bound: BoundQuery, described: tuple[DescribedColumn, ...]) -> tuple[OutputColumn, ...]:
    """The served columns: PostgreSQL names and types them, and must agree with the binder."""
    columns = []
    seen: set[str] = set()
    for column, name, wanted in zip(bound.plan.columns, bound.names, described, strict=True):
        if wanted.name in seen:
            raise UserError(
                "invalid-query",
                f"two output columns are called {wanted.name}",
                hint="Give one of them another name with AS.",
            )
        seen.add(wanted.name)
        if wanted.type is None or wanted.type.kind != column.type.kind or wanted.name != name:
            raise UserError(
                "unsupported-type",
                f"output column {wanted.name} is {wanted.declared} in PostgreSQL"
                f" and {column.type.sql} here",
                hint="Cast it to the type that you want.",
            )
        columns.append(OutputColumn(name, column.type, wanted.declared))
    return tuple(columns)


def _capture(engine: Engine, state: State, checked: Checked, fence: int) -> None:
    """New sources enter the catalog with empty logs; `ingest` sets them up and copies them."""
    put: list[Database | Relation | Source] = []
    if not state.databases:
        put.append(Database(HOME, "home", "", 0))
    for source in checked.sources:
        if state.source(HOME, source.oid) is None:
            stored = tuple((c.physical, c.type) for c in source.columns if c.type is not None)
            visible = tuple(name for name, _ in stored)
            relation = Relation(source.relation, stored, visible, Pin(0, 0))
            with engine.step(CreateLog(relation.id)):
                pin = engine.store.create(relation.id, arrow_schema(relation))
            put += [replace(relation, pin=pin), source]
    if put:
        new = tuple(one.relation for one in put if isinstance(one, Source))
        with engine.step(RecordSources(new)):
            engine.catalog.commit(Change(put=tuple(put)), fence=fence)


def _check_sources(state: State, checked: Checked) -> None:
    for source in checked.sources:
        current = state.source(HOME, source.oid)
        if current is None or current.status is not Status.ACTIVE:
            reason = current.reason if current is not None else "it is gone"
            raise UserError(
                "unsupported-source",
                f"{source.schema}.{source.name} cannot be captured: {reason}",
            )


def _publish_first(engine: Engine, state: State, checked: Checked, fence: int) -> StreamTable:
    """Compute the table at the newest epoch, and publish it with all that it reads."""
    *below, _ = upstream(state.stream_tables, checked.table)
    require_active(tuple(below))
    advanced, state = advance_all(engine, state, tuple(below), fence)
    relations = []
    for stage in checked.definition.stages:
        relation = relation_of(stage, Pin(0, 0))
        with engine.step(CreateLog(relation.id)):
            pin = engine.store.create(relation.id, arrow_schema(relation))
        relations.append(replace(relation, pin=pin))
    state = state.with_relations(relations)
    decision = Decision("FULL", "first refresh")
    attempt = Attempt(checked.table, state.database(HOME).epoch, decision)
    inputs = frozenset(checked.table.inputs)
    advanced += (advance(engine, attempt, checked.definition, inputs, state),)
    publish(engine, advanced, as_of=state.database(HOME).cut_at, fence=fence)
    created = engine.catalog.state().stream_table(checked.table.schema, checked.table.name)
    assert created is not None
    return created
