"""Creating a stream table: checked first, then captured, copied, computed and published.

What is checked needs no right to write. From then on the order of writes keeps a crash harmless:
a source is in the catalog before its triggers exist, and a source that no stream table reads is
taken down again by whoever writes next.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from psycopg import sql

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
from headrace.definition import Definition, SourceSchema, new_definition, relation_of
from headrace.engine import HOME, Engine
from headrace.errors import UserError
from headrace.ingest.ingest import ingest
from headrace.lifecycle.names import parse_name
from headrace.lifecycle.sources import remove_idle_sources
from headrace.query import BoundQuery, bind, table_names
from headrace.refresh.plan import Decision
from headrace.refresh.refresh import Attempt, advance
from headrace.relations.rows import arrow_schema
from headrace.source.describe import DescribedColumn, describe
from headrace.source.introspect import find_table
from headrace.source.table import SourceTable
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
    """A request that can be carried out: its table, its definition and the sources it needs."""

    table: StreamTable
    definition: Definition
    sources: tuple[Source, ...]
    notices: tuple[str, ...]


def check(engine: Engine, state: State, request: Request) -> Checked:
    """Everything that can be known before anything is written, or UserError."""
    search_path = engine.database.search_path
    with engine.database.session() as connection:
        schema, name = parse_name(request.name, search_path[0])
        _check_free(connection, state, schema, name)
        described = describe(connection, request.query, search_path)
        tables = [
            find_table(connection, table_schema, table, search_path)
            for table_schema, table in table_names(request.query)
        ]
    sources = tuple(dict.fromkeys(_source(state, table) for table in tables))
    bound = bind(request.query, SourceSchema(sources, search_path))
    relation = new_relation_id()
    table = StreamTable(
        relation,
        schema,
        name,
        request.query,
        _outputs(bound, described),
        inputs=tuple(source.relation for source in sources),
        key=tuple(bound.names[i] for i in bound.key or ()),
        refresh_mode=request.refresh_mode,
        schedule=request.schedule,
        options=request.options,
        search_path=search_path,
        created_at=datetime.now(UTC),
    )
    return Checked(table, new_definition(relation, bound), sources, bound.notices)


def create(engine: Engine, request: Request) -> StreamTable:
    """Make the stream table and fill it; on any failure nothing of it is left."""
    check(engine, engine.catalog.state(), request)
    with engine.writing() as lease:
        remove_idle_sources(engine, lease.fence)
        state = engine.catalog.state()
        checked = check(engine, state, request)
        try:
            _capture(engine, state, checked, lease.fence)
            state = ingest(engine, engine.catalog.state(), lease.fence)
            _check_sources(state, checked)
            return _publish_first(engine, state, checked, lease.fence)
        except BaseException:
            for stage in checked.definition.stages:
                engine.store.drop(stage.relation)
            remove_idle_sources(engine, lease.fence)
            raise


def _check_free(connection: Any, state: State, schema: str, name: str) -> None:
    if state.stream_table(schema, name) is not None:
        raise UserError(
            "name-exists",
            f"stream table {schema}.{name} exists already",
            hint="Drop it first, or choose another name.",
        )
    regclass = sql.Identifier(schema, name).as_string()
    (found,) = connection.execute("SELECT to_regclass(%s)", [regclass]).fetchone()
    if found is not None:
        raise UserError(
            "name-exists",
            f"a table, view or index called {schema}.{name} exists already",
            hint="Choose another name for the stream table.",
        )
    known = connection.execute("SELECT to_regnamespace(%s)", [sql.Identifier(schema).as_string()])
    if known.fetchone()[0] is None:
        raise UserError(
            "invalid-name",
            f"schema {schema} does not exist",
            hint=f"CREATE SCHEMA {sql.Identifier(schema).as_string()};",
        )


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
            pin = engine.store.create(relation.id, arrow_schema(relation))
            put += [replace(relation, pin=pin), source]
    if put:
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
    relations = {}
    for stage in checked.definition.stages:
        relation = relation_of(stage, Pin(0, 0))
        pin = engine.store.create(relation.id, arrow_schema(relation))
        relations[relation.id] = replace(relation, pin=pin)
    attempt = Attempt(engine, checked.table, state, fence, Decision("FULL", "first refresh"))
    inputs = frozenset(checked.table.inputs)
    advance(attempt, checked.definition, inputs, relations)
    created = engine.catalog.state().stream_table(checked.table.schema, checked.table.name)
    assert created is not None
    return created
