"""Check that sources can be captured as requested, and write the SQL that a DBA has to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from headrace.capture.health import capture_present, check
from headrace.capture.recopy_reasons import captured_part
from headrace.capture.statements import CaptureOptions, Roles, script, setup_sql
from headrace.capture.wal.availability import Server, impossible, obstacles, of_table, read_server
from headrace.capture.wal.identity import ReplicaIdentity, full_sql, identities
from headrace.capture.wal.publication import Entry, Publication, add_table_sql, read_publication
from headrace.catalog import State
from headrace.catalog.records import CaptureMode, Source, StreamTable
from headrace.engine import HOME, Engine
from headrace.errors import UserError
from headrace.ingest.append_only import is_declared
from headrace.ingest.modes import record_modes
from headrace.ingest.requested_modes import requested_mode_of, require_agreement
from headrace.lifecycle.databases import require_attached
from headrace.lifecycle.name_resolver import source_of
from headrace.lifecycle.names import name_parts
from headrace.publish.partitioning import sharing_notice
from headrace.settings import Settings
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import find_table, inspect
from headrace.source.table import SourceTable


def check_modes(engine: Engine, before: State, after: State) -> None:
    """Refuse a change of state after which sources could not be captured as requested.

    Only sources that the change newly requests in WAL mode are checked: a source that fell back to
    triggers does not prevent its readers from being altered.
    """
    require_agreement(after)
    settings = engine.settings(after)
    to_wal = [source for source in after.sources if _comes_to_wal(source, before, after, settings)]
    for number in sorted({source.database for source in to_wal}):
        database_sources = [source for source in to_wal if source.database == number]
        _require_possible(engine, after, number, database_sources, settings)


def reset_shrunk_sources(engine: Engine, before: State, fence: int) -> None:
    """Clear the recorded loss of rows of sources that are newly declared append-only."""
    state = engine.catalog.state()
    reset = [
        replace(source, shrunk_at=None)
        for source in state.sources
        if source.shrunk_at is not None
        and is_declared(state, source)
        and not is_declared(before, source)
    ]
    if reset:
        record_modes(engine, state, reset, fence)


def _comes_to_wal(source: Source, before: State, after: State, settings: Settings) -> bool:
    if requested_mode_of(after, settings, source) != "wal":
        return False
    recorded = before.source(source.database, source.oid)
    return recorded is None or requested_mode_of(before, settings, recorded) != "wal"


def _require_possible(
    engine: Engine, state: State, number: int, sources: Sequence[Source], settings: Settings
) -> None:
    record = next((database for database in state.databases if database.id == number), None)
    slot = record.following.slot if record is not None and record.following is not None else ""
    database = _database(engine, state, number)
    with database.session() as connection:
        tables_by_oid = inspect(connection, [source.oid for source in sources])
        tables = [
            captured_part(source, tables_by_oid[source.oid])
            for source in sources
            if source.oid in tables_by_oid
        ]
        obstacles_by_oid = impossible(
            connection,
            tables,
            database.version,
            slot,
            may_change=settings.auto_replica_identity,
        )
    for source in sources:
        obstacle = obstacles_by_oid.get(source.oid)
        if obstacle is not None:
            raise UserError(
                "invalid-option",
                f"{state.called(source)} cannot be captured with cdc_mode wal: {obstacle.reason}",
                hint=f"{obstacle.remedy} With cdc_mode auto it is captured by triggers meanwhile.",
            )


OWNERS = "SELECT oid, pg_get_userbyid(relowner) FROM pg_class WHERE oid = ANY (%s::oid[])"
NOTHING = "-- Nothing is missing.\n"


@dataclass(frozen=True)
class Needs:
    """The state of capture of tables of one database: which lack triggers, which move to WAL.

    Those that lack triggers have all their columns, so that one script is enough.
    `published` is the publication, `identities` are by oid.
    """

    server: Server
    version: int
    owners: dict[int, str]
    bare: tuple[SourceTable, ...]
    moved_to_wal: tuple[SourceTable, ...]
    shared: bool
    identities: dict[int, ReplicaIdentity]
    published: Publication | None


def capture_sql(engine: Engine, state: State, names: Sequence[str] = ()) -> str:
    """Return the SQL that is missing for these tables, or for all sources, by database.

    A table is named as in a query: one of an attached database with the alias before its schema.
    """
    tables_by_database = _named(engine, state, names) if names else _captured(engine, state)
    settings = engine.settings(state)
    options = CaptureOptions(settings.max_buffer_mb, settings.unlogged_buffers)
    parts = []
    for number, tables in sorted(tables_by_database.items()):
        alias = "home" if number == HOME else state.database(number).alias
        title = (
            f"-- In database {_in_one_line(alias)}:\n"
            if tables_by_database.keys() != {HOME}
            else ""
        )
        parts.append(title + text_of(_needs(engine, state, number, tables), options))
    return "\n".join(parts) or NOTHING


def text_of(needs: Needs, options: CaptureOptions) -> str:
    """Return the script for one database, after remarks about what no script can do (pure)."""
    statements: list[sql.Composed] = []
    remarks: list[str] = []
    shared = needs.shared
    for table in needs.bare:
        roles = Roles(needs.server.role, needs.owners[table.oid])
        statements += setup_sql(table, roles, options, with_schema=not shared)
        shared = True
    published = needs.published
    for table in needs.moved_to_wal:
        identity = needs.identities[table.oid]
        obstacle = of_table(table, identity)
        if obstacle is not None:
            remarks.append(f"{table.schema}.{table.name}: {obstacle.reason}")
            if not identity.curable:
                # If it were published, its updates would fail.
                continue
            statements += full_sql(identity)
        statements += add_table_sql(table, published, needs.version)
        published = _with(published, table)
    if needs.moved_to_wal:
        standing = obstacles(replace(needs.server, replication=True))
        remarks += [
            f"{server_obstacle.reason}: {server_obstacle.remedy}" for server_obstacle in standing
        ]
        if not needs.server.replication:
            role = sql.Identifier(needs.server.role)
            statements.append(sql.SQL("ALTER ROLE {} REPLICATION").format(role))
    lines = "".join(f"-- {_in_one_line(remark)}\n" for remark in remarks)
    return lines + (script(statements) if statements else NOTHING)


def _in_one_line(text: str) -> str:
    """Return the text for a comment of a script: no name in it may end the comment."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _with(publication: Publication | None, table: SourceTable) -> Publication:
    """Return the publication once it has the table, as far as that decides what is left to do."""
    existing = publication or Publication(0, "", all_tables=False, complete=True, entries={})
    return replace(existing, complete=True, entries={**existing.entries, table.oid: Entry(0, "")})


def _needs(engine: Engine, state: State, number: int, tables: Sequence[SourceTable]) -> Needs:
    settings = engine.settings(state)
    record = next((database for database in state.databases if database.id == number), None)
    slot = record.following.slot if record is not None and record.following is not None else ""
    sources = {
        table.oid: state.source(number, table.oid) or source_of(table, "", number)
        for table in tables
    }
    parts = [captured_part(sources[table.oid], table) for table in tables]
    database = _database(engine, state, number)
    with database.session() as connection, translated():
        missing = check(connection, parts, {table.oid: table for table in tables})
        return Needs(
            read_server(connection, slot),
            database.version,
            dict(connection.execute(OWNERS, [list(sources)]).fetchall()),
            tuple(
                table
                for table in tables
                if table.oid in missing and sources[table.oid].mode is not CaptureMode.WAL
            ),
            tuple(
                part
                for part in parts
                if requested_mode_of(state, settings, sources[part.oid]) != "trigger"
            ),
            capture_present(connection),
            identities(connection, parts, database.version),
            read_publication(connection),
        )


def _captured(engine: Engine, state: State) -> dict[int, list[SourceTable]]:
    """Return the tables of all sources, by database."""
    tables_by_database: dict[int, list[SourceTable]] = {}
    for number in sorted({source.database for source in state.sources}):
        oids = [source.oid for source in state.sources if source.database == number]
        with _database(engine, state, number).session() as connection:
            tables_by_database[number] = list(inspect(connection, oids).values())
    return tables_by_database


def _named(engine: Engine, state: State, names: Sequence[str]) -> dict[int, list[SourceTable]]:
    tables_by_database: dict[int, list[SourceTable]] = {}
    for text in names:
        *place, name = name_parts(text)
        if len(place) > 2:
            raise UserError("invalid-name", f"{text!r} has too many parts")
        number = require_attached(state, place[0]).id if len(place) == 2 else HOME
        database = _database(engine, state, number)
        schema = place[-1] if place else None
        with database.session() as connection:
            table = find_table(connection, schema, name, database.search_path)
        if table not in tables_by_database.setdefault(number, []):
            tables_by_database[number].append(table)
    return tables_by_database


def _database(engine: Engine, state: State, number: int) -> Database:
    return engine.database if number == HOME else engine.source_database(state.database(number))


# Options that say how the sources of a table are captured.
OF_SOURCES = ("cdc_mode", "append_only")


def option_notices(state: State, table: StreamTable) -> tuple[str, ...]:
    """Return a notice for each option of a table that has no effect, or has it only up to a limit.

    The sources of a table that was never filled are not known yet.
    """
    name = f"{table.schema}.{table.name}"
    sharing = sharing_notice(table)
    notices = [] if sharing is None else [sharing]
    if not (table.is_uninitialized or _has_sources(state, table)):
        notices += [
            f"{option} has no effect: {name} reads only stream tables; give it to those that"
            " read the source"
            for option in OF_SOURCES
            if option in table.options
        ]
    if "tier" in table.options and table.schedule is None:
        notices.append(f"tier has no effect on when {name} is refreshed: the table has no schedule")
    return tuple(notices)


def _has_sources(state: State, table: StreamTable) -> bool:
    return any(isinstance(state.origin(name), Source) for name in table.inputs)
