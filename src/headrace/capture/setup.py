"""Setting up and removing the capture of a source; both can be repeated safely."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from psycopg import Connection, errors, sql

from headrace.capture.health import CaptureHealth, ask_health, capture_present, read_health
from headrace.capture.statements import (
    CaptureOptions,
    Roles,
    fits_buffer,
    limit_sql,
    script,
    setup_sql,
    teardown_sql,
)
from headrace.capture.triggers import ALL_TRIGGERS, trigger_names
from headrace.errors import Transient, UserError
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import CAPTURE_SCHEMA
from headrace.source.rights import require_own_schema
from headrace.source.table import SourceTable

# While we wait for a lock on a user's table, later sessions queue behind us: so the waits are
# short, and many.
LOCK_MILLISECONDS = 500
ATTEMPTS = 8
PAUSE_SECONDS = 0.1
TRIGGERS_WAIT = "Triggers are created while no transaction that has written to the table is open."

PARTIES = """
SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner),
    ARRAY(SELECT g.tgname FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = ANY (%(names)s)),
    ARRAY(
        SELECT g.tgname FROM pg_trigger g
        WHERE g.tgrelid = c.oid AND g.tgname = ANY (%(names)s) AND g.tgconstraint <> 0
    )
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %(oid)s
"""


def set_up(
    database: Database,
    table: SourceTable,
    *,
    max_buffer_mb: int = CaptureOptions.max_buffer_mb,
    unlogged: bool = False,
    whole: SourceTable | None = None,
) -> bool:
    """Make triggers record every change of `table.stored`; return False if they did so already.

    The SQL for a DBA records all columns of the `whole` table, so that it also suffices for readers
    that are rebuilt over columns which have changed.

    The same transaction notes in `recopy_reasons` that capture was set up, so the source is copied
    afterwards. Raises `source-locked` while others hold locks on the table, `capture-not-set-up`
    with the SQL for a DBA where rights are missing, `cut-interrupted` if the table changed
    meanwhile, `untrusted-object` where others made an object that capture relies on.
    """
    options = CaptureOptions(max_buffer_mb, unlogged)
    database.require_own_capture(again=True)
    with database.session() as connection:
        runtime = str(_one(connection, "SELECT current_user", ())[0])
        installed = _installed(connection, table, whole)
        permitted = _is_permitted(connection, table.oid)
        shared = permitted and capture_present(connection)
        parties = _one(connection, PARTIES, {"names": list(ALL_TRIGGERS), "oid": table.oid})
        if not parties or parties[:2] != (table.schema, table.name):
            raise Transient("cut-interrupted", f"{_shown(table)} was renamed or dropped just now")
    *_, owner, triggers, constraints = parties
    roles = Roles(runtime=runtime, owner=owner)
    # A constraint trigger that somebody gave one of our names cannot be replaced.
    obsolete = sorted((set(triggers) - set(trigger_names(table))) | set(constraints))

    def complete_setup(connection: Connection[Any]) -> Sequence[sql.Composed]:
        require_own_schema(connection, CAPTURE_SCHEMA, database.roles)
        # Shared objects are not set up again unless that is needed: their rights are watched.
        shared = permitted and capture_present(connection)
        return setup_sql(table, roles, options, with_schema=not shared, obsolete=obsolete)

    if installed is not None:
        # Changes are recorded: the rest can wait until no lock or missing right prevents it.
        with suppress(Transient, errors.InsufficientPrivilege):
            if installed.failing or installed.unlogged_buffer != options.unlogged:
                perform(database, complete_setup, _shown(table))
                return True
            recorded = installed.recorded(table, whole)
            if installed.max_buffer_bytes != options.max_buffer_bytes and recorded is not None:
                perform(database, lambda _: limit_sql(recorded, options), _shown(table))
        return False
    try:
        perform(database, complete_setup, _shown(table))
    except errors.InsufficientPrivilege as error:
        complete = setup_sql(
            whole if whole is not None and fits_buffer(whole) else table,
            roles,
            options,
            with_schema=not shared,
            obsolete=obsolete,
        )
        raise UserError(
            "capture-not-set-up",
            f"role {runtime} may not set up change capture of {_shown(table)}",
            detail=error.diag.message_primary,
            hint=f"Let a superuser run in this database:\n{script(complete)}",
        ) from error
    except (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName) as error:
        raise Transient(
            "cut-interrupted", f"{_shown(table)} was changed just now", detail=str(error)
        ) from error
    return True


def tear_down(database: Database, oid: int, *, patient: bool = True, for_good: bool = True) -> None:
    """Remove triggers, function, buffer and records of a source; with the last one the schema.

    Without `for_good`, for a source that is read from the WAL, its epoch and the schema stay.
    Raises `source-locked` while others hold locks on the table; without `patient`, after one try.
    """
    relation: sql.Identifier | None = None
    database.require_own_capture(again=True)
    with database.session() as connection:
        if not capture_present(connection):
            return
        row = _one(connection, PARTIES, {"names": [], "oid": oid})
        if row:
            relation = sql.Identifier(*row[:2])
    taken_away = teardown_sql(oid, relation, for_good=for_good)
    name = relation.as_string() if relation else str(oid)
    try:
        perform(database, lambda _: taken_away, name, patient=patient)
        perform(database, _remove_schema, name, patient=patient)
    except errors.InsufficientPrivilege as error:
        raise UserError(
            "capture-not-set-up",
            f"the role may not take away change capture of {name}",
            detail=error.diag.message_primary,
            hint=f"Let the role that set it up, or a superuser, run in this database:\n"
            f"{script(taken_away)}",
        ) from error


def perform(
    database: Database,
    statements: Callable[[Connection[Any]], Sequence[sql.Composed]],
    name: str,
    *,
    patient: bool = True,
    detail: str = TRIGGERS_WAIT,
    rehearse: bool = False,
) -> None:
    """Run statements in one transaction, with retries while another session holds a lock.

    With `rehearse` the transaction is rolled back.
    """
    with database.setup_connection() as connection:
        for attempt in range(ATTEMPTS if patient else 1):
            if attempt:
                time.sleep(PAUSE_SECONDS)
            try:
                with connection.transaction(force_rollback=rehearse):
                    wait = sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_MILLISECONDS)
                    connection.execute(wait)
                    for statement in statements(connection):
                        connection.execute(statement)
                return
            except (errors.LockNotAvailable, errors.DeadlockDetected):
                continue
            except (
                errors.InsufficientPrivilege,
                errors.UndefinedTable,
                errors.UndefinedColumn,
                errors.InvalidSchemaName,
            ):
                raise
            except errors.Error:
                with translated():
                    raise
    raise Transient(
        "source-locked",
        f"{name} is locked by another session",
        detail=detail,
        hint="Try again when long transactions on the table have ended.",
    )


def _installed(
    connection: Connection[Any],
    table: SourceTable,
    whole: SourceTable | None,
) -> CaptureHealth | None:
    """Return the health of the installed capture, if that records every change of the table.

    Return None, too, for a role that may not read it.
    """
    try:
        if not capture_present(connection):
            return None
        health = read_health(ask_health(connection, [table.oid])).get(table.oid)
    except errors.InsufficientPrivilege:
        return None
    return None if health is None or health.fault(table, whole) else health


def _is_permitted(connection: Connection[Any], oid: int) -> bool:
    """Return whether capture, where it is set up, has the rights and the function that it needs."""
    try:
        if not capture_present(connection):
            return True
        health = read_health(ask_health(connection, [oid])).get(oid)
    except (UserError, errors.InsufficientPrivilege):
        return False
    return health is None or (health.permitted and health.notes_failures)


def _remove_schema(connection: Connection[Any]) -> Sequence[sql.Composed]:
    schema = sql.Identifier(CAPTURE_SCHEMA)
    remaining = sql.SQL(
        "SELECT EXISTS (SELECT FROM {0}.sources) OR EXISTS (SELECT FROM {0}.announced)"
    ).format(schema)
    if _one(connection, remaining, ())[0]:
        return ()
    return (sql.SQL("DROP SCHEMA {} CASCADE").format(schema),)


def _one(
    connection: Connection[Any], query: str | sql.Composed, parameters: Any
) -> tuple[Any, ...]:
    with translated():
        row = connection.execute(query, parameters).fetchone()
    return row or ()


def _shown(table: SourceTable) -> str:
    return f"{table.schema}.{table.name}"
