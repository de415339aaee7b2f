"""Conversion of existing change buffers: another limit, unlogged or logged.

A buffer is rewritten under a lock that blocks writers; after a cut has emptied the buffer, that
takes little time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg import Connection, errors, sql

from headrace.capture.health import CaptureHealth, ask_health, capture_present, read_health
from headrace.capture.recopy_reasons import Captured, captured_part
from headrace.capture.setup import perform
from headrace.capture.space import buffer_sizes
from headrace.capture.statements import CaptureOptions, limit_sql, persistence_sql, script
from headrace.errors import HeadraceError, Transient, UserError
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import inspect
from headrace.source.table import SourceTable

# Writers wait while a buffer is rewritten: up to this size that takes less than a second.
LARGEST_REWRITTEN = 64 * 1024 * 1024
WRITERS_WAIT = "A buffer is converted while no transaction that has written to the table is open."


def adapt(
    database: Database, sources: Iterable[Captured], options: CaptureOptions, *, patient: bool
) -> Mapping[int, HeadraceError | None]:
    """Convert the buffers of sources to `options`; return those that differed, with any failure.

    Broken capture is not converted: the next cut sets it up again. Unless the caller is `patient`,
    no large buffer is rewritten, and a lock is tried only once.
    """
    sources_by_oid = {source.oid: source for source in sources}
    database.require_own_capture(again=True)
    with database.session() as connection:
        if not capture_present(connection):
            return {}
        health_by_oid = _health(connection, sources_by_oid)
        different = [oid for oid, health in health_by_oid.items() if differs(health, options)]
        tables = inspect(connection, different)
        sizes = buffer_sizes(connection, different)
    done: dict[int, HeadraceError | None] = {}
    for oid, table in tables.items():
        part = captured_part(sources_by_oid[oid], table)
        if health_by_oid[oid].recorded(part, table) is None:
            continue
        health, now = health_by_oid[oid], options
        is_rewritten = health.unlogged_buffer != options.unlogged
        is_large = sizes.get(oid, 0) > LARGEST_REWRITTEN
        if is_rewritten and is_large and not patient:
            now = replace(options, unlogged=health.unlogged_buffer)
        try:
            if differs(health, now):
                _convert(database, part, table, health, now, patient=patient)
            done[oid] = None if now == options else _too_large(table)
        except HeadraceError as error:
            done[oid] = error
    return done


def differs(health: CaptureHealth, options: CaptureOptions) -> bool:
    return (health.unlogged_buffer, health.max_buffer_bytes) != (
        options.unlogged,
        options.max_buffer_bytes,
    )


def conversion(
    health: CaptureHealth, part: SourceTable, whole: SourceTable, options: CaptureOptions
) -> tuple[sql.Composed, ...]:
    """Return the statements that convert a buffer to `options` (pure)."""
    recorded = health.recorded(part, whole)
    if recorded is None:
        return ()
    statements: tuple[sql.Composed, ...] = ()
    if health.max_buffer_bytes != options.max_buffer_bytes:
        statements += limit_sql(recorded, options)
    if health.unlogged_buffer != options.unlogged:
        statements += persistence_sql(recorded, options, revive=not health.unlogged)
    return statements


def _convert(
    database: Database,
    part: SourceTable,
    whole: SourceTable,
    before: CaptureHealth,
    options: CaptureOptions,
    *,
    patient: bool,
) -> None:
    def statements(connection: Connection[Any]) -> Sequence[sql.Composed]:
        health = _health(connection, [part.oid]).get(part.oid)
        return () if health is None else conversion(health, part, whole, options)

    name = f"{part.schema}.{part.name}"
    try:
        perform(database, statements, name, patient=patient, detail=WRITERS_WAIT)
    except errors.InsufficientPrivilege as error:
        needed = script(conversion(before, part, whole, options))
        raise UserError(
            "capture-not-set-up",
            f"the role may not convert the change buffer of {name}",
            detail=error.diag.message_primary,
            hint=f"Let the role that set it up, or a superuser, run in this database:\n{needed}",
        ) from error
    except (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName) as error:
        raise Transient(
            "cut-interrupted", f"capture of {name} was changed just now", detail=str(error)
        ) from error


def _too_large(table: SourceTable) -> Transient:
    return Transient(
        "source-locked",
        f"the change buffer of {table.schema}.{table.name} is too large to convert now",
        detail="Writers would wait while it is rewritten.",
        hint="Run `headrace cdc --convert` when they can.",
    )


def _health(connection: Connection[Any], oids: Iterable[int]) -> dict[int, CaptureHealth]:
    with translated():
        return read_health(ask_health(connection, oids))
