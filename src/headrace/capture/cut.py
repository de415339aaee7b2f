"""A cut: one snapshot of a source database, and the sources as they are in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg import Connection, errors, sql

from headrace.capture.announced import UNKNOWN, ask_announced, was_restored
from headrace.capture.busy import SourcesUnusable, busy_owner, unreadable
from headrace.capture.health import ask_health, capture_present, read_health
from headrace.capture.recopy_reasons import (
    Captured,
    reason_to_copy,
    reason_to_copy_followed,
    relabelled,
)
from headrace.capture.settle import settle
from headrace.capture.snapshot import Snapshot
from headrace.errors import NeedsReinit, Transient, UserError
from headrace.source.connection import Database
from headrace.source.faults import translated
from headrace.source.introspect import ask_tables, inspect, read_tables
from headrace.source.reading import find_misfit
from headrace.source.rights import ask_rights, read_rights
from headrace.source.server import IDENTITY, require_primary
from headrace.source.snapshot import Range, page_ranges
from headrace.source.table import SourceTable

# The last column reads the insert position first: if true, all WAL inserted by the time of the
# snapshot is flushed.
SNAPSHOT = sql.SQL("""
SELECT pg_current_snapshot()::text, statement_timestamp(), {},
    (pg_current_wal_insert_lsn() - '0/0')::bigint,
    pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()
""").format(IDENTITY)


@dataclass(frozen=True)
class Cut:
    """A pg_snapshot as text, when it was taken, and the server it is of.

    The WAL has all that the cut contains before `position`.
    """

    snapshot: str
    taken_at: datetime
    system_identifier: str
    timeline: int
    position: int


@dataclass(frozen=True)
class OpenCut:
    """A cut whose transaction is still open, so that tables can be read in it.

    `tables` are the sources as they are in the cut; a dropped one is missing. `recopy_reasons`
    gives the sources that must be copied again instead of reading their changes, each with the
    reason; `forbidden` those that must not be read at all any more, which are not among them.
    `acknowledged` is the epoch that the source database itself records for each source as
    acknowledged, `announced` the latest that was announced; None where capture is not set up.
    """

    cut: Cut
    tables: Mapping[int, SourceTable]
    recopy_reasons: Mapping[int, str]
    forbidden: Mapping[int, UserError]
    acknowledged: Mapping[int, int]
    announced: Mapping[int, int] | None
    locked: frozenset[int]
    database: Database = field(repr=False)
    connection: Connection[Any] = field(repr=False)

    def export(self) -> str:
        """Return a name by which other connections can join the snapshot while the cut is open."""
        with translated():
            row = self.connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        return str(row[0])

    def lock(self, oid: int) -> None:
        """Keep a table of the cut from being rewritten from now on, while the cut is open.

        The table may have been rewritten since the snapshot: the caller compares its storage
        afterwards.
        """
        try:
            with translated():
                _lock(self.connection, {oid: self.tables[oid]})
        except SourcesUnusable as error:
            # The cut is open, and perhaps taken in: the caller must not retry without the source.
            raise error.why[oid] from error

    def ranges(self, table: SourceTable, parts: int) -> tuple[Range, ...]:
        """Return parts of a locked table that together hold every row of it in the cut."""
        return page_ranges(self.connection, table, parts)

    def find_misfit(self, table: SourceTable) -> NeedsReinit | None:
        """Return the error that names a value of the table in the cut which cannot be stored."""
        name = sql.Identifier(table.schema, table.name).as_string()
        return find_misfit(self.connection, name, table)

    def confirm(self) -> None:
        """Raise `cut-interrupted` if the locked tables do not read as they did in the cut.

        To be called after copying: enum labels are looked up when a row is read, not in its
        snapshot, and no lock on the table keeps them from being renamed.
        """
        with self.database.session() as connection:
            now = inspect(connection, self.locked)
        for oid, table in self.tables.items():
            if oid in now and relabelled(table.storage, now[oid].storage):
                name = f"{table.schema}.{table.name}"
                raise Transient("cut-interrupted", f"an enum of {name} was changed just now")


@contextmanager
def open_cut(
    database: Database,
    sources: Sequence[Captured],
    *,
    lock: Collection[int] = (),
    followed: Collection[int] = (),
    previous: str | None = None,
    epoch: int | None = None,
) -> Iterator[OpenCut]:
    """Take a cut; `lock` names the sources (oids) that will be copied in it.

    The sources to copy are locked first: a snapshot does not protect against TRUNCATE or a
    rewriting ALTER of another session. Sources in `followed` are read from the WAL, so their
    triggers are not checked. `previous` is the snapshot of the last cut, and `epoch` its number: a
    server that has not reached it is refused, and a source that was acknowledged beyond it is
    copied again. The contents of a cut are on disk when this yields, so that no crash of the server
    undoes them. Raises `standby-server`, `source-locked`, `cut-interrupted`, `source-rewound`,
    `untrusted-object`.
    """
    oids = [source.oid for source in sources]
    database.require_own_capture()
    with database.session() as connection:
        require_primary(connection)
        with translated():
            forbidden = read_rights(ask_rights(connection, oids))
        unreadable_copies = {oid: forbidden[oid] for oid in lock if oid in forbidden}
        if unreadable_copies:
            raise SourcesUnusable(unreadable_copies)
        copied = [source for source in sources if source.oid in lock]
        settled = {
            **settle(connection, [source for source in copied if source.oid not in followed]),
            **inspect(connection, [source.oid for source in copied if source.oid in followed]),
        }
        present = capture_present(connection)
        try:
            with translated():
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                _lock(connection, settled)
                with connection.pipeline():
                    moment = connection.execute(SNAPSHOT)
                    tables_answer = ask_tables(connection, oids)
                    health_answer = ask_health(connection, oids) if present else None
                    announced_answer = ask_announced(connection) if present else None
                row = moment.fetchone()
                assert row is not None
                *identity, flushed = row
                tables = read_tables(tables_answer)
                health = read_health(health_answer) if health_answer else {}
                announced = dict(announced_answer.fetchall()) if announced_answer else None
            cut = Cut(*identity)
            _require_same(settled, tables)
            if previous is not None:
                _require_progress(previous, cut.snapshot)
                goes_on = epoch is not None and not set(oids) <= set(lock)
                if goes_on and was_restored(announced or {}, epoch or 0):
                    raise _rewound(f"The last cut was epoch {epoch}, which is not known there.")
            if not flushed:
                flush(database)
            reasons = {
                source.oid: reason_to_copy_followed(source, tables.get(source.oid))
                if source.oid in followed
                else reason_to_copy(source, tables.get(source.oid), health.get(source.oid), epoch)
                or (UNKNOWN if epoch and source.oid not in (announced or {}) else None)
                for source in sources
            }
            yield OpenCut(
                cut=cut,
                tables=tables,
                recopy_reasons={
                    oid: reason
                    for oid, reason in reasons.items()
                    if reason is not None and oid not in forbidden
                },
                forbidden=forbidden,
                acknowledged={
                    oid: source_health.acknowledged_epoch for oid, source_health in health.items()
                },
                announced=announced,
                locked=frozenset(settled),
                database=database,
                connection=connection,
            )
        finally:
            with suppress(psycopg.Error):
                connection.rollback()


def flush(database: Database) -> None:
    """Have everything committed so far written to disk, by a commit that waits for it.

    PostgreSQL flushes asynchronous commits by itself, but with a delay.
    """
    with database.session() as connection, translated(), connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = local")
        connection.execute("SELECT pg_logical_emit_message(true, 'headrace', '')")


def flush_if_behind(database: Database) -> None:
    """Have all visible commits written to disk, so that the slot sends them."""
    query = "SELECT pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()"
    with database.session() as connection, translated():
        row = connection.execute(query).fetchone()
    if row is not None and not row[0]:
        flush(database)


def _lock(connection: Connection[Any], tables: Mapping[int, SourceTable]) -> None:
    """Lock tables in the order of oids. LOCK TABLE takes no snapshot: the next query does."""
    for _, table in sorted(tables.items()):
        name = sql.Identifier(table.schema, table.name)
        try:
            connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(name))
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise _interrupted(table) from error
        except psycopg.errors.LockNotAvailable as error:
            raise SourcesUnusable({table.oid: busy_owner(table)}) from error
        except psycopg.errors.InsufficientPrivilege as error:
            refused = unreadable(table, connection.info.user, error.diag.message_primary)
            raise SourcesUnusable({table.oid: refused}) from error


def _require_same(locked: Mapping[int, SourceTable], tables: Mapping[int, SourceTable]) -> None:
    """Raise `cut-interrupted` unless the locked names are still those of the tables by oid."""
    for oid, table in locked.items():
        now = tables.get(oid)
        if now is None or (now.schema, now.name) != (table.schema, table.name):
            raise _interrupted(table)


def went_back(
    connection: Connection[Any], previous: str, epoch: int, sources: Collection[int]
) -> bool:
    """Return whether the server has not reached the last cut, or has no record of it.

    Such a server assigns transaction ids again, which would be taken for those that the cut saw.
    """
    try:
        with connection.pipeline():
            moment = connection.execute("SELECT pg_current_snapshot()::text")
            answer = ask_announced(connection)
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return True
    except errors.Error:
        with translated():
            raise
    row = moment.fetchone()
    assert row is not None
    announced = dict(answer.fetchall())
    has_last_cut = announced.keys() >= set(sources) and not was_restored(announced, epoch)
    return not has_last_cut or not _is_as_far(previous, row[0])


def _is_as_far(previous: str, snapshot: str) -> bool:
    return Snapshot.read(previous).xmax <= Snapshot.read(snapshot).xmax


def _require_progress(previous: str, snapshot: str) -> None:
    if not _is_as_far(previous, snapshot):
        raise _rewound(f"The last cut was {previous}, now the snapshot is {snapshot}.")


def _rewound(detail: str) -> NeedsReinit:
    return NeedsReinit(
        "source-rewound",
        "the source database is older than the last cut of it",
        detail=detail,
        hint="It was restored from a backup. Drop and create the stream tables again.",
    )


def _interrupted(table: SourceTable) -> Transient:
    return Transient(
        "cut-interrupted", f"{table.schema}.{table.name} was renamed or dropped just now"
    )
